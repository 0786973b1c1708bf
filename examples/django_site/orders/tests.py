"""The shop's own tests: `python manage.py test`."""

from django.contrib.auth.models import User
from django.test import TransactionTestCase

from orders.models import Order
from shiftwork.contrib.django import app


class PlacingAnOrder(TransactionTestCase):
    """A job has a connection of its own, and does not see what `TestCase` keeps in a transaction."""

    def test_the_receipt_is_sent(self) -> None:
        with app.testing() as test:
            self.client.post("/orders/", {"email": "ada@example.org"})
            (run,) = test.blocking.run_pending(raise_errors=True)
        assert run.result == "ada@example.org"
        assert Order.objects.get().receipt_sent

    def test_the_admin_links_to_the_dashboard(self) -> None:
        self.client.force_login(User.objects.create_superuser("ada"))
        self.assertContains(self.client.get("/admin/"), 'href="http://127.0.0.1:8421/"')
