"""The one page of the shop."""

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from orders.models import Order
from orders.tasks import send_receipt
from shiftwork.contrib.django import enqueue_on_commit


@csrf_exempt  # so that curl can place an order
def place_order(request: HttpRequest) -> HttpResponse:
    with transaction.atomic():
        order = Order.objects.create(email=request.POST["email"])
        enqueue_on_commit(send_receipt.call(order_id=order.id))
    return HttpResponse(f"order {order.id}: the receipt comes by mail\n", status=201)
