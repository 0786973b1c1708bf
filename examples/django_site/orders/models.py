"""What the shop keeps."""

from django.db import models


class Order(models.Model):
    """An order, and whether its customer has the receipt."""

    email = models.EmailField()
    receipt_sent = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"order {self.id} of {self.email}"
