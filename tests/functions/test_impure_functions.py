"""Functions that reach for chance, clocks, files, networks, processes or the driver, in whatever disguise."""

from __future__ import annotations

import sqlite3
import threading
import urllib.request

import pytest
from pyspark import cloudpickle

from flinkmagic.functions.purity import impurity

IMPURE = {
    # files
    "open": "f = lambda p: open(p).read()",
    "map open": "f = lambda ps: list(map(open, ps))",
    "sorted by open": "f = lambda ps: sorted(ps, key=open)",
    "open in a dict": "def f(k, p):\n    return {'o': open, 'l': len}[k](p)",
    "open in a global dict": "TABLE = {'o': open}\ndef f(p):\n    return TABLE['o'](p)",
    "open as a default": "def f(p, o=open):\n    return o(p).read()",
    "open by another name": "reader = open\ndef f(p):\n    return reader(p).read()",
    "open in a partial": "from functools import partial\ng = partial(open, 'a')\ndef f(x):\n    return g().read()",
    "open as an attribute": "class C:\n    read = open\ndef f(p):\n    return C.read(p)",
    "open of an instance": "class C:\n    pass\nc = C()\nc.how = open\ndef f(p):\n    return c.how(p)",
    "open in a closure": "def make(how):\n    return lambda p: how(p)\nf = make(open)",
    "open of builtins": "import builtins\nf = lambda p: builtins.open(p)",
    "open by getattr": "import builtins\nf = lambda p: getattr(builtins, 'open')(p)",
    "open by a computed name": "f = lambda o, n: getattr(o, n)()",
    "open of io": "import io\nf = lambda p: io.open(p)",
    "open of codecs": "import codecs\nf = lambda p: codecs.open(p)",
    "open of a module's": "import json\nf = lambda p: json.codecs.open(p)",
    "in a comprehension": "f = lambda ps: [open(p) for p in ps]",
    "in a nested function": "def f(p):\n    def g():\n        return open(p)\n    return g().read()",
    "in a decorator": "def d(g):\n    def w(x):\n        return g(open(x).read())\n    return w\n@d\ndef f(x):\n    return x",
    "in a property": "class C:\n    @property\n    def text(self):\n        return open('a').read()\nc = C()\ndef f(x):\n    return c.text",
    "in a descriptor": "class D:\n    def __get__(self, o, t):\n        return open('a').read()\nclass C:\n    text = D()\ndef f(x):\n    return C().text",
    "in a metaclass": "class M(type):\n    def __call__(cls):\n        return open('a').read()\nclass C(metaclass=M):\n    pass\ndef f(x):\n    return C()",
    "path": "from pathlib import Path\nf = lambda p: Path(p).read_text()",
    "path by methodcaller": "from operator import methodcaller\nfrom pathlib import Path\nf = lambda p: methodcaller('read_text')(Path(p))",
    "path by attrgetter": "import operator\nfrom pathlib import Path\nf = lambda p: operator.attrgetter('parent.read_text')(Path(p))()",
    "path that is kept": "from pathlib import Path\np = Path('a')\ndef f(x):\n    g = p.read_text\n    return g()",
    "path that is moved": "from pathlib import Path\nf = lambda a, b: Path(a).replace(b)",
    "exists": "from os import path as p\nf = lambda x: p.exists(x)",
    "module in a variable": "import os, math\ndef f(x):\n    m = math if x else os\n    return m.stat(x)",
    "module in a local": "def f(x):\n    import os\n    m = os\n    return m.stat(x).st_size",
    "module in a class": "class C:\n    import os as tools\nf = lambda x: C.tools.remove(x)",
    "module in a list": "import os\nf = lambda x: [os][0].remove(x)",
    "module by nonlocal": "def f(x):\n    m = None\n    def g():\n        nonlocal m\n        import os as m\n    g()\n    return m.stat(x)",
    "configparser": "import configparser\ndef f(x):\n    c = configparser.ConfigParser()\n    c.read('a.ini')\n    return c['a']['b']",
    "ElementTree": "import xml.etree.ElementTree as ET\nf = lambda x: ET.parse('a.xml').getroot().text",
    "ElementTree of a file": "import xml.etree.ElementTree as ET\nf = lambda x: ET.ElementTree(file='a.xml').getroot().text",
    "pkgutil": "import pkgutil\nf = lambda x: pkgutil.get_data('a', 'b')",
    "resources": "from importlib import resources\nf = lambda x: resources.files('a').joinpath('b').read_text()",
    "parquet": "import pyarrow.parquet as pq\nf = lambda x: pq.ParquetFile('a').read().num_rows",
    "arrow's files": "import pyarrow as pa\nf = lambda x: pa.memory_map('a').read()",
    "memmap": "import numpy as np\nf = lambda x: np.memmap('a')[0]",
    "fromfile": "from numpy import fromfile\nf = lambda x: fromfile('a')",
    "tofile": "import numpy as np\nf = lambda x: np.arange(x).tofile('a')",
    "read_csv": "import pandas as pd\nf = lambda x: pd.read_csv('a')",
    "read_csv by a partial": "import pandas as pd\nfrom functools import partial\nrates = partial(pd.read_csv, 'a')\nf = lambda x: rates()",
    "to_csv": "f = lambda pdf: pdf.to_csv('a')",
    "to_csv, unbound": "import pandas as pd\nf = lambda pdf: pdf.pipe(pd.DataFrame.to_csv, 'a')",
    "to_csv by keyword": "f = lambda pdf: pdf.to_csv(path_or_buf='a')",
    "to_csv with arguments": "f = lambda pdf, *a: pdf.to_csv(*a)",
    "log file": "import logging\ndef f(x):\n    logging.getLogger('a').addHandler(logging.FileHandler('a'))\n    return x",
    "pickle": "import pickle\nf = lambda b: pickle.loads(b)",
    "spark files": "def f(x):\n    from pyspark import SparkFiles\n    return SparkFiles.get('a')",
    # chance
    "random": "import random\nf = lambda x: random.random()",
    "random by name": "from random import random as r\nf = lambda x: r()",
    "seeded": "import random\nR = random.Random(1)\nf = lambda x: R.random()",
    "shuffle in a list": "import random\nSTEPS = [str.strip, random.choice]\ndef f(x):\n    for s in STEPS:\n        x = s(x)\n    return x",
    "numpy's": "import numpy as np\nf = lambda x: np.random.rand()",
    "numpy's by a variable": "import numpy as np\ndef f(x):\n    r = np.random\n    return r.rand()",
    "numpy's, bound": "import numpy as np\nnormal = np.random.normal\nf = lambda x: normal()",
    "generator of numpy's": "import numpy as np\nR = np.random.default_rng()\nf = lambda x: R.integers(3)",
    "sample": "f = lambda pdf: pdf.sample(n=2)",
    "sample by text": "f = lambda pdf: pdf.groupby('k').apply('sample')",
    "uuid4": "import uuid\nf = lambda x: str(uuid.uuid4())",
    "secrets": "import secrets\nf = lambda x: secrets.token_hex()",
    "statistics": "from statistics import NormalDist\nf = lambda x: NormalDist().samples(1)",
    # clocks
    "now": "from datetime import datetime\nf = lambda x: datetime.now()",
    "now, bound": "from datetime import datetime\nclock = datetime.now\nf = lambda x: clock()",
    "now of a value": "f = lambda d: d.now()",
    "now by type": "f = lambda d: type(d).now()",
    "now by getattr": "import datetime\nf = lambda x: getattr(datetime.datetime, 'now')()",
    "now in a default_factory": "from dataclasses import dataclass, field\nfrom datetime import datetime\n@dataclass\nclass C:\n    t: object = field(default_factory=datetime.now)\nf = lambda x: C().t",
    "today": "import datetime as dt\nf = lambda d: (dt.date.today() - d).days",
    "time": "import time\nf = lambda x: time.time()",
    "time by name": "from time import time as t\nf = lambda x: t()",
    "pandas' now": "import pandas as pd\nf = lambda x: pd.Timestamp.now()",
    "now as text": "import pandas as pd\nf = lambda x: pd.Timestamp('now')",
    "today as a global's text": "import pandas as pd\nDAY = 'today'\nf = lambda x: pd.to_datetime(DAY)",
    "numpy's today": "import numpy as np\nf = lambda x: np.datetime64('today')",
    # the world
    "environment": "import os\nf = lambda x: os.environ.get('A')",
    "environment by name": "from os import environ\nf = lambda x: environ['A']",
    "getenv": "from os import getenv as g\nf = lambda x: g('A')",
    "requests": "def f(u):\n    import requests\n    return requests.get(u).text",
    "urllib": "from urllib.request import urlopen\nf = lambda u: urlopen(u).read()",
    "http": "import http.client\ndef f(h):\n    c = http.client.HTTPConnection(h)\n    c.request('GET', '/')\n    return c.getresponse().read()",
    "socket": "import socket\nf = lambda h: socket.gethostbyname(h)",
    "subprocess": "import subprocess as sp\nf = lambda c: sp.check_output(c)",
    "system": "import os\nf = lambda c: os.system(c)",
    "sqlite": "import sqlite3\nf = lambda q: sqlite3.connect('a').execute(q).fetchall()",
    "thread": "import threading\nf = lambda x: threading.Thread(target=len).start()",
    "thread class": "import threading\nclass T(threading.Thread):\n    pass\nf = lambda x: T().start()",
    "task": "def f(x):\n    from pyspark import TaskContext\n    return TaskContext.get().partitionId()",
    "process": "import os\nf = lambda x: os.getpid()",
    "address": "f = lambda x: id(x)",
    # code that cannot be read, and state
    "eval": "f = lambda s: eval(s)",
    "exec": "def f(s):\n    exec(s)\n    return s",
    "import by name": "f = lambda n: __import__(n)",
    "importlib": "import importlib\nf = lambda n: importlib.import_module(n).main()",
    "pandas' eval": "f = lambda pdf: pdf.eval('a = @open')",
    "query that calls": "f = lambda pdf: pdf.query('a.map(@open)')",
    "subclasses": "f = lambda x: ().__class__.__base__.__subclasses__()",
    "globals": "f = lambda n: globals()[n]()",
    "builtins of a function": "g = lambda: 1\nf = lambda x: g.__globals__['__builtins__']",
    "self of a builtin": "f = lambda x: len.__self__",
    "frames": "import sys\nf = lambda x: sys._getframe(1)",
    "frame of a generator": "f = lambda x: (i for i in x).gi_frame.f_builtins",
    "modules": "import sys\nf = lambda x: sys.modules['os'].getcwd()",
    "global": "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n",
    "nonlocal": "def make():\n    n = 0\n    def g(x):\n        nonlocal n\n        n += 1\n        return n\n    return g\nf = make()",
    "iterator that goes on": "import itertools\nc = itertools.count()\nf = lambda x: next(c)",
    "what was not shipped": "f = lambda x: not_there(x)",
    "a library that is not known": "def f(s):\n    import yaml\n    return yaml.safe_load(s)",
    "a method that is not known": "f = lambda x: x.frobnicate()",
    "a method with arguments": "f = lambda x, *a: x.frobnicate(*a)",
    "a method with a keyword": "f = lambda x: x.frobnicate(deep=True)",
}  # fmt: skip


def test_there_are_enough_of_them():
    assert len(IMPURE) >= 100


@pytest.mark.parametrize("source", IMPURE.values(), ids=IMPURE)
def test_a_function_that_may_see_or_change_more_is_not_known_to_be_pure(why, source):
    assert why(source)


@pytest.mark.parametrize("function", [open, eval, sqlite3.connect, urllib.request.urlopen, threading.Thread])
def test_a_function_by_its_mere_name(function):
    assert impurity(cloudpickle.dumps((function, "return type")))


def test_what_is_no_pickle_is_not_known_to_be_pure():
    assert "cannot be read" in impurity(b"no pickle")
