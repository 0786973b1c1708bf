"""Creates the table of orders."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """As `manage.py makemigrations` has written it."""

    operations = [  # noqa: RUF012 - the form of every migration
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("email", models.EmailField(max_length=254)),
                ("receipt_sent", models.BooleanField(default=False)),
            ],
        )
    ]
