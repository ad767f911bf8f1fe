"""When the live view stays, when its picture stays alone, and that every view shows each run of its graph."""

from __future__ import annotations

import time

import pytest

pytestmark = pytest.mark.long

PLACE = "flinkmagic-place-"

NAP = """\
%%flinkgraph {name}
nap = F.udf(lambda value: __import__('time').sleep({seconds}) or value, 'long')
spark.range(0, 2, 1, 2).select(nap('id').alias('id')).write.mode('overwrite').json('{name}')
"""

GATED = """\
%%flinkgraph {name}
def wait(value):
    import os, time
    while not os.path.exists({go!r}): time.sleep(0.05)
    return value
spark.range(0, 2, 1, 2).select(F.udf(wait, 'long')('id').alias('id')).write.mode('overwrite').json('{name}')
"""

WATCH = """\
import threading
from flinkmagic.magics import live_view
def followed_to_the_end():
    for thread in threading.enumerate():
        if thread.name.startswith("flinkmagic-view-"):
            thread.join(60)
            assert not thread.is_alive()
made, displays = [], {{}}
class Watched(live_view.LiveView):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        made.append(self)
import flinkmagic.magics.live as live
live.LiveView = Watched
live_view.IDLE_S = {idle}
"""

ENDED = "{name}.jobs[-1].wait()\nfollowed_to_the_end()"


def test_a_view_that_was_asked_for_stays_until_there_are_too_many(kernel) -> None:
    kernel.run(WATCH.format(idle=120) + "live_view.OPEN_VIEWS.most, kept = 2, live_view.OPEN_VIEWS.most\n")
    kernel.run(NAP.format(name="asked", seconds=0))
    first = kernel.run("%flinkshow asked")
    (shown,) = first.displays
    assert set(shown) == {"image/svg+xml", "text/html", "text/plain"}
    assert kernel.run("made[0]._view._place").value["text/plain"].strip("'") in shown["text/html"]
    kernel.run("%flinkshow asked")
    closed = "print([view._closed for view in made], len(asked.started))"
    assert kernel.run(closed).stdout.strip() == "[False, False] 2"
    last = kernel.run("%flinkshow asked")
    assert kernel.run(closed).stdout.strip() == "[True, False, False] 2"
    (update,) = last.elsewhere
    assert PLACE not in update["text/html"]
    assert set(update) == set(shown)
    kernel.run("live_view.OPEN_VIEWS.most = kept")


def test_a_view_of_a_job_that_runs_makes_no_room_for_others(kernel, tmp_path) -> None:
    kernel.run(
        WATCH.format(idle=120)
        + "live_view.OPEN_VIEWS.most, kept = 0, live_view.OPEN_VIEWS.most\nlive_view.OPEN_VIEWS._held.clear()\n"
    )
    kernel.run(GATED.format(name="busy", go=f"{tmp_path}/go"))
    kernel.run("%flinkrun busy --detach")
    kernel.run("%flinkshow busy")
    assert kernel.run("print(busy.jobs[-1].status, made[-1]._closed)").stdout.strip() == "RUNNING False"
    ended = kernel.run(f"open('{tmp_path}/go', 'w').close()\n" + ENDED.format(name="busy"))
    assert kernel.run("print(made[-1]._closed)").stdout.strip() == "True"
    assert PLACE not in ended.elsewhere[-1]["text/html"]
    assert "FINISHED" in ended.elsewhere[-1]["text/html"]
    kernel.run("live_view.OPEN_VIEWS.most = kept")


def test_the_view_of_a_run_stays_after_its_end_while_it_is_used(kernel, tmp_path) -> None:
    kernel.run(WATCH.format(idle=120))
    kernel.run(GATED.format(name="used", go=f"{tmp_path}/go"))
    kernel.run("%flinkrun used --detach\nmade[-1]._view._handle_custom_msg({'type': 'touch'}, [])")
    ended = kernel.run(f"open('{tmp_path}/go', 'w').close()\n" + ENDED.format(name="used"))
    (update,) = ended.elsewhere
    assert PLACE in update["text/html"]
    assert "FINISHED" in update["text/html"]
    assert "while the job ran" not in update["text/html"]
    assert kernel.run("print(made[-1]._closed)").stdout.strip() == "False"
    kernel.run("%flinkrun used --detach\n" + ENDED.format(name="used"))
    assert kernel.run("print(made[-1]._closed)").stdout.strip() == "True"


def test_run_in_one_view_is_shown_in_the_other_and_can_be_run_again(kernel) -> None:
    kernel.run(WATCH.format(idle=120))
    kernel.run(NAP.format(name="twice", seconds=0.2))
    kernel.run("%flinkshow twice\n%flinkshow twice")
    actions = "print([view._view._frame['action'] for view in made], [v._view._frame.get('status') for v in made])"
    assert kernel.run(actions).stdout.startswith("['run', 'run']")
    kernel.run("made[0]._view._handle_custom_msg({'type': 'run'}, [])\n" + ENDED.format(name="twice"))
    assert kernel.run(actions).stdout.strip() == "['again', 'again'] ['FINISHED', 'FINISHED']"
    kernel.run("made[1]._view._handle_custom_msg({'type': 'run'}, [])\n" + ENDED.format(name="twice"))
    assert kernel.run(actions).stdout.strip() == "['again', 'again'] ['FINISHED', 'FINISHED']"
    assert kernel.run("print(len(twice.jobs))").stdout.strip() == "2"


def test_cancel_in_a_view_ends_the_job_and_a_second_view_may_come_late(kernel) -> None:
    kernel.run(WATCH.format(idle=120))
    kernel.run(NAP.format(name="belated", seconds=60))
    kernel.run("%flinkrun belated --detach")
    kernel.run("%flinkshow belated")
    running = kernel.run(
        "import time; late = time.monotonic() + 60\n"
        "while any(view._view._frame['action'] != 'cancel' for view in made):\n"
        "    assert time.monotonic() < late\n"
        "    time.sleep(0.05)"
    )
    assert running.status == "ok"
    cancel = "made[1]._view._handle_custom_msg({'type': 'cancel'}, [])\n"
    assert kernel.run(cancel + ENDED.format(name="belated")).status == "ok"
    assert kernel.run("print(belated.jobs[-1].status, made[0]._closed)").stdout.strip() == "CANCELED True"
    states = kernel.run("print([str(state) for state in belated.jobs[-1].info().status_timestamps])").stdout
    assert states.index("CANCELLING") < states.index("CANCELED")


def test_closing_the_notebook_stops_neither_the_job_nor_its_books(kernel, folder, tmp_path) -> None:
    kernel.run(WATCH.format(idle=120))
    kernel.run(GATED.format(name="gone", go=f"{tmp_path}/go"))
    kernel.run("%flinkrun gone --detach")
    kernel.run(
        "def tell():\n    gone.jobs[-1].wait()\n    followed_to_the_end()\n    open('over', 'w').close()\n"
        "threading.Thread(target=tell).start()"
    )
    kernel.leave()
    (tmp_path / "go").touch()
    deadline = time.monotonic() + 60
    while not (folder / "over").exists():
        assert time.monotonic() < deadline, "the job did not end"
        time.sleep(0.05)
    kernel.come_back()
    (line,) = [line.split() for line in kernel.run("%flinkjobs gone").stdout.splitlines() if line.startswith("gone")]
    assert line[:3] == ["gone", "1", "FINISHED"]
    assert line[-1] == "2/2"
    assert kernel.run("print(len(gone.jobs[-1].tasks()), made[0]._closed)").stdout.strip() == "2 True"
