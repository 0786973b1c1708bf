"""`{% shiftwork_dashboard_url %}`."""

from django import template
from django.core.exceptions import ImproperlyConfigured

from shiftwork.contrib.django.site_settings import site_settings

register = template.Library()


@register.simple_tag
def shiftwork_dashboard_url() -> str | None:
    """Return where the dashboard is; None if the settings do not say."""
    try:
        return site_settings().dashboard_url
    except ImproperlyConfigured:
        return None
