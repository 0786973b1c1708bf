"""The tasks of this app. shiftwork imports this file when Django starts."""

from orders.models import Order
from shiftwork.contrib.django import app


@app.task(pool="mail", max_retries=5)
def send_receipt(order_id: int) -> str:
    order = Order.objects.get(id=order_id)
    order.receipt_sent = True  # and a mail to order.email
    order.save()
    return order.email


@app.worker(cron="0 3 * * *")
async def delete_old_orders() -> None:
    await Order.objects.filter(receipt_sent=True).adelete()
