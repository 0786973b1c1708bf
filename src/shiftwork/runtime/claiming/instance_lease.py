"""By what name and by what right an instance claims jobs."""


class InstanceLease:
    """The name of an instance, and whether it holds a lease under it.

    Without a lease it claims nothing: the jobs would be taken from it at once. An instance whose lease was lost goes on
    under a new name, so that nothing it still holds is mistaken for something it claims later.
    """

    def __init__(self, name: str) -> None:
        self.instance: str = name
        """The present name."""
        self.draining = False
        """Whether it claims no more, lease or not."""
        self._name = name
        self._lives = 0
        self._leased: str | None = None

    def holds(self, instance: str) -> bool:
        """Whether it may claim under this name now."""
        return self._leased == instance and not self.draining

    def renewed(self) -> bool:
        """The lease under the present name holds. True if it is news."""
        news = self._leased != self.instance
        self._leased = self.instance
        return news

    def suspend(self) -> None:
        """The lease may have ended."""
        self._leased = None

    def rename(self) -> None:
        """The lease was lost, and with it the name."""
        self._lives += 1
        self.instance = f"{self._name}.{self._lives}"
