"""When a picture takes the place of the live view, and that every view shows a run from wherever it was started."""

from __future__ import annotations

import time

WIDGET = "application/vnd.jupyter.widget-view+json"

NAP = """\
%%flinkgraph {name}
nap = F.udf(lambda value: __import__('time').sleep({seconds}) or value, 'long')
spark.range(0, 2, 1, 2).select(nap('id').alias('id')).write.mode('overwrite').json('{name}')
"""

WATCH = """\
from flinkmagic.magics import live_view
made, displays = [], {{}}
class Watched(live_view.LiveView):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        made.append(self)
import flinkmagic.magics.live as live
live.LiveView = Watched
live_view.IDLE_S = {idle}
"""

ENDED = "twice.jobs[-1].wait()\nimport time; time.sleep(0.6)"


def test_an_unused_view_becomes_a_picture_when_the_next_cell_runs(kernel) -> None:
    kernel.run(WATCH.format(idle=120))
    kernel.run(NAP.format(name="unused", seconds=0))
    shown = kernel.run("%flinkshow unused")
    assert WIDGET in shown.displays[0]
    told = kernel.run("print(made[-1]._closed.is_set(), unused.started)")
    assert told.stdout.strip() == "True []"


def test_a_used_view_stays_until_it_is_left_alone(kernel) -> None:
    kernel.run(WATCH.format(idle=1.5))
    kernel.run(NAP.format(name="used", seconds=0))
    kernel.run("%flinkshow used")
    # The click comes while no cell runs, as from a front end: before the next cell begins.
    kernel.run("%flinkshow used\nmade[-1]._view._handle_custom_msg({'type': 'touch'}, [])")
    assert kernel.run("print(made[-1]._closed.is_set())").stdout.strip() == "False"
    time.sleep(2.5)
    assert kernel.run("print(made[-1]._closed.is_set())").stdout.strip() == "True"


def test_run_in_one_view_is_shown_in_the_other_and_can_be_run_again(kernel) -> None:
    kernel.run(WATCH.format(idle=120))
    kernel.run(NAP.format(name="twice", seconds=0.2))
    kernel.run(
        "%flinkshow twice\n%flinkshow twice\nfor each in made: each._view._handle_custom_msg({'type': 'touch'}, [])"
    )
    actions = "print([view._view._frame['action'] for view in made], [v._view._frame.get('status') for v in made])"
    assert kernel.run(actions).stdout.startswith("['run', 'run']")
    kernel.run("made[0]._view._handle_custom_msg({'type': 'run'}, [])\n" + ENDED)
    assert kernel.run(actions).stdout.strip() == "['again', 'again'] ['FINISHED', 'FINISHED']"
    kernel.run("made[1]._view._handle_custom_msg({'type': 'run'}, [])\n" + ENDED)
    assert kernel.run(actions).stdout.strip() == "['again', 'again'] ['FINISHED', 'FINISHED']"
    assert kernel.run("print(len(twice.jobs))").stdout.strip() == "2"


def test_cancel_in_a_view_ends_the_job_and_a_second_view_may_come_late(kernel) -> None:
    kernel.run(WATCH.format(idle=120))
    kernel.run(NAP.format(name="late", seconds=60))
    kernel.run("%flinkrun late --detach")
    kernel.run("%flinkshow late")
    running = kernel.run("time.sleep(0.6)\nprint([view._view._frame['action'] for view in made])")
    assert running.stdout.strip() == "['cancel', 'cancel']"
    kernel.run("made[1]._view._handle_custom_msg({'type': 'cancel'}, [])\nlate.jobs[-1].wait()\ntime.sleep(0.6)")
    assert kernel.run("print(late.jobs[-1].status, made[0]._closed.is_set())").stdout.strip() == "CANCELED True"
    states = kernel.run("print([str(state) for state in late.jobs[-1].info().status_timestamps])").stdout
    assert states.index("CANCELLING") < states.index("CANCELED")


def test_closing_the_notebook_stops_neither_the_job_nor_its_books(kernel, folder) -> None:
    kernel.run(WATCH.format(idle=120))
    kernel.run(NAP.format(name="gone", seconds=3))
    kernel.run("%flinkrun gone --detach")
    kernel.leave()
    deadline = time.monotonic() + 60
    while not (folder / "gone" / "_SUCCESS").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(2)
    kernel.come_back()
    (line,) = [line.split() for line in kernel.run("%flinkjobs gone").stdout.splitlines() if line.startswith("gone")]
    assert line[:3] == ["gone", "1", "FINISHED"]
    assert line[-1] == "2/2"
    assert kernel.run("print(len(gone.jobs[-1].tasks()), made[0]._closed.is_set())").stdout.strip() == "2 True"
