"""The app that `shiftwork run` loads to be measured. Its environment says where it is and what it does."""

import os
from pathlib import Path

from benchmarks.counts import Counter
from benchmarks.subjects.shiftwork import Kind, Shiftwork

_kind: Kind = "process" if os.environ["BENCH_KIND"] == "process" else "async"
_subject = Shiftwork(os.environ["BENCH_STORE"], seconds=float(os.environ["BENCH_SECONDS"]), kind=_kind)
_subject.count(Counter(Path(os.environ["BENCH_COUNTS"])).ran)
app = _subject.app
