"""No message shows the password in a store's URL, however wrong the URL is."""

from itertools import product

import pytest

from shiftwork.errors import UnknownStoreError
from shiftwork.store.urls import open_store

SCHEMES = ("redis", "rediss", "redis+cluster", "redis+sentinel", "postgresql")
PASSWORDS: tuple[str, ...] = (
    "hunter2%zz",
    "hunter2%",
    "hun ter2",
    "hunter2 ",
    "hunter2?x",
    "hun?x=ter2",
    "hunter2@x",
    "hunter2/x",
)
PASSWORDS += ("hunter2#x", "hunter2\x1b", "hunter2&x", "hunter2=x", "hunter2:x", "hunter2[x")


FORMS = ("u:{}@h:1/0", ":{}@h/0", "u:{}@h:x/0", "u:{}", "u:{}/0", "u:{}@h/0?nonsense=1")
LIKE_PORTS = ("1?hunter2", "1/hunter2", "?hunter2", "/hunter2")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_password_is_never_shown(scheme: str) -> None:
    for form, password in product(FORMS, PASSWORDS):
        place = form.format(password)
        place = place.replace("/0", "/service/0") if scheme == "redis+sentinel" else place
        try:
            shown = open_store(f"{scheme}://{place}").url
        except UnknownStoreError as error:
            shown = str(error)
        assert not any(part in shown for part in ("hun", "ter2")), (place, shown)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nor_is_one_that_begins_like_a_port(scheme: str) -> None:
    for password in LIKE_PORTS:
        with pytest.raises(UnknownStoreError) as caught:
            open_store(f"{scheme}://u:{password}@h:1/0")
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("query", ["sentinel_password=hunter2&ter2", "sentinel_password=a&hunter2=b"])
def test_nor_is_one_in_the_parameters(query: str) -> None:
    with pytest.raises(UnknownStoreError) as caught:
        open_store(f"redis+sentinel://h:1/service/0?{query}")
    assert "ter2" not in str(caught.value)


def test_an_encoded_password_is_taken() -> None:
    assert open_store("redis://u:hun%20ter%40%3F%2F%252@h:1/0").url == "redis://u@h:1/0"
    assert open_store("postgresql://u:hun%20ter%40%3F%2F%252@h:1/d").url == "postgresql://u@h:1/d"
