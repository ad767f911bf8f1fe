"""Functions that reach for chance, clocks, files, networks, processes or the driver, in whatever disguise."""

from __future__ import annotations

import re
import sqlite3
import threading
import urllib.request

import pytest
from pyspark import cloudpickle

from flinkmagic.functions.purity import impurity

IMPURE = r"""
### files

## open
f = lambda p: open(p).read()

## map open
f = lambda ps: list(map(open, ps))

## sorted by open
f = lambda ps: sorted(ps, key=open)

## open in a dict
def f(k, p):
    return {'o': open, 'l': len}[k](p)

## open in a global dict
TABLE = {'o': open}
def f(p):
    return TABLE['o'](p)

## open as a default
def f(p, o=open):
    return o(p).read()

## open by another name
reader = open
def f(p):
    return reader(p).read()

## open in a partial
from functools import partial
g = partial(open, 'a')
def f(x):
    return g().read()

## open as an attribute
class C:
    read = open
def f(p):
    return C.read(p)

## open of an instance
class C:
    pass
c = C()
c.how = open
def f(p):
    return c.how(p)

## open in a closure
def make(how):
    return lambda p: how(p)
f = make(open)

## open of builtins
import builtins
f = lambda p: builtins.open(p)

## open by getattr
import builtins
f = lambda p: getattr(builtins, 'open')(p)

## open by a computed name
f = lambda o, n: getattr(o, n)()

## open of io
import io
f = lambda p: io.open(p)

## open of codecs
import codecs
f = lambda p: codecs.open(p)

## open of a module's
import json
f = lambda p: json.codecs.open(p)

## in a comprehension
f = lambda ps: [open(p) for p in ps]

## in a nested function
def f(p):
    def g():
        return open(p)
    return g().read()

## in a decorator
def d(g):
    def w(x):
        return g(open(x).read())
    return w
@d
def f(x):
    return x

## in a property
class C:
    @property
    def text(self):
        return open('a').read()
c = C()
def f(x):
    return c.text

## in a descriptor
class D:
    def __get__(self, o, t):
        return open('a').read()
class C:
    text = D()
def f(x):
    return C().text

## in a metaclass
class M(type):
    def __call__(cls):
        return open('a').read()
class C(metaclass=M):
    pass
def f(x):
    return C()

## path
from pathlib import Path
f = lambda p: Path(p).read_text()

## path by methodcaller
from operator import methodcaller
from pathlib import Path
f = lambda p: methodcaller('read_text')(Path(p))

## path by attrgetter
import operator
from pathlib import Path
f = lambda p: operator.attrgetter('parent.read_text')(Path(p))()

## path that is kept
from pathlib import Path
p = Path('a')
def f(x):
    g = p.read_text
    return g()

## path that is moved
from pathlib import Path
f = lambda a, b: Path(a).replace(b)

## exists
from os import path as p
f = lambda x: p.exists(x)

## module in a variable
import os, math
def f(x):
    m = math if x else os
    return m.stat(x)

## module in a local
def f(x):
    import os
    m = os
    return m.stat(x).st_size

## module in a class
class C:
    import os as tools
f = lambda x: C.tools.remove(x)

## module in a list
import os
f = lambda x: [os][0].remove(x)

## module by nonlocal
def f(x):
    m = None
    def g():
        nonlocal m
        import os as m
    g()
    return m.stat(x)

## configparser
import configparser
def f(x):
    c = configparser.ConfigParser()
    c.read('a.ini')
    return c['a']['b']

## ElementTree
import xml.etree.ElementTree as ET
f = lambda x: ET.parse('a.xml').getroot().text

## ElementTree of a file
import xml.etree.ElementTree as ET
f = lambda x: ET.ElementTree(file='a.xml').getroot().text

## pkgutil
import pkgutil
f = lambda x: pkgutil.get_data('a', 'b')

## resources
from importlib import resources
f = lambda x: resources.files('a').joinpath('b').read_text()

## parquet
import pyarrow.parquet as pq
f = lambda x: pq.ParquetFile('a').read().num_rows

## arrow's files
import pyarrow as pa
f = lambda x: pa.memory_map('a').read()

## memmap
import numpy as np
f = lambda x: np.memmap('a')[0]

## fromfile
from numpy import fromfile
f = lambda x: fromfile('a')

## tofile
import numpy as np
f = lambda x: np.arange(x).tofile('a')

## read_csv
import pandas as pd
f = lambda x: pd.read_csv('a')

## read_csv by a partial
import pandas as pd
from functools import partial
rates = partial(pd.read_csv, 'a')
f = lambda x: rates()

## to_csv
f = lambda pdf: pdf.to_csv('a')

## to_csv, unbound
import pandas as pd
f = lambda pdf: pdf.pipe(pd.DataFrame.to_csv, 'a')

## to_csv by keyword
f = lambda pdf: pdf.to_csv(path_or_buf='a')

## to_csv with arguments
f = lambda pdf, *a: pdf.to_csv(*a)

## log file
import logging
def f(x):
    logging.getLogger('a').addHandler(logging.FileHandler('a'))
    return x

## pickle
import pickle
f = lambda b: pickle.loads(b)

## spark files
def f(x):
    from pyspark import SparkFiles
    return SparkFiles.get('a')

### chance

## random
import random
f = lambda x: random.random()

## random by name
from random import random as r
f = lambda x: r()

## seeded
import random
R = random.Random(1)
f = lambda x: R.random()

## shuffle in a list
import random
STEPS = [str.strip, random.choice]
def f(x):
    for s in STEPS:
        x = s(x)
    return x

## numpy's
import numpy as np
f = lambda x: np.random.rand()

## numpy's by a variable
import numpy as np
def f(x):
    r = np.random
    return r.rand()

## numpy's, bound
import numpy as np
normal = np.random.normal
f = lambda x: normal()

## generator of numpy's
import numpy as np
R = np.random.default_rng()
f = lambda x: R.integers(3)

## sample
f = lambda pdf: pdf.sample(n=2)

## sample by text
f = lambda pdf: pdf.groupby('k').apply('sample')

## uuid4
import uuid
f = lambda x: str(uuid.uuid4())

## secrets
import secrets
f = lambda x: secrets.token_hex()

## statistics
from statistics import NormalDist
f = lambda x: NormalDist().samples(1)

### clocks

## now
from datetime import datetime
f = lambda x: datetime.now()

## now, bound
from datetime import datetime
clock = datetime.now
f = lambda x: clock()

## now of a value
f = lambda d: d.now()

## now by type
f = lambda d: type(d).now()

## now by getattr
import datetime
f = lambda x: getattr(datetime.datetime, 'now')()

## now in a default_factory
from dataclasses import dataclass, field
from datetime import datetime
@dataclass
class C:
    t: object = field(default_factory=datetime.now)
f = lambda x: C().t

## today
import datetime as dt
f = lambda d: (dt.date.today() - d).days

## time
import time
f = lambda x: time.time()

## time by name
from time import time as t
f = lambda x: t()

## pandas' now
import pandas as pd
f = lambda x: pd.Timestamp.now()

## now as text
import pandas as pd
f = lambda x: pd.Timestamp('now')

## today as a global's text
import pandas as pd
DAY = 'today'
f = lambda x: pd.to_datetime(DAY)

## now as text between blanks
import pandas as pd
f = lambda x: pd.Timestamp(' NOW ')

## numpy's today
import numpy as np
f = lambda x: np.datetime64('today')

### the world

## environment
import os
f = lambda x: os.environ.get('A')

## environment by name
from os import environ
f = lambda x: environ['A']

## getenv
from os import getenv as g
f = lambda x: g('A')

## requests
def f(u):
    import requests
    return requests.get(u).text

## urllib
from urllib.request import urlopen
f = lambda u: urlopen(u).read()

## http
import http.client
def f(h):
    c = http.client.HTTPConnection(h)
    c.request('GET', '/')
    return c.getresponse().read()

## socket
import socket
f = lambda h: socket.gethostbyname(h)

## subprocess
import subprocess as sp
f = lambda c: sp.check_output(c)

## system
import os
f = lambda c: os.system(c)

## sqlite
import sqlite3
f = lambda q: sqlite3.connect('a').execute(q).fetchall()

## thread
import threading
f = lambda x: threading.Thread(target=len).start()

## thread class
import threading
class T(threading.Thread):
    pass
f = lambda x: T().start()

## task
def f(x):
    from pyspark import TaskContext
    return TaskContext.get().partitionId()

## process
import os
f = lambda x: os.getpid()

## address
f = lambda x: id(x)

### code that cannot be read, and state

## eval
f = lambda s: eval(s)

## exec
def f(s):
    exec(s)
    return s

## import by name
f = lambda n: __import__(n)

## importlib
import importlib
f = lambda n: importlib.import_module(n).main()

## pandas' eval
f = lambda pdf: pdf.eval('a = @open')

## query that calls
f = lambda pdf: pdf.query('a.map(@open)')

## subclasses
f = lambda x: ().__class__.__base__.__subclasses__()

## globals
f = lambda n: globals()[n]()

## builtins of a function
g = lambda: 1
f = lambda x: g.__globals__['__builtins__']

## self of a builtin
f = lambda x: len.__self__

## frames
import sys
f = lambda x: sys._getframe(1)

## frame of a generator
f = lambda x: (i for i in x).gi_frame.f_builtins

## modules
import sys
f = lambda x: sys.modules['os'].getcwd()

## global
n = 0
def f(x):
    global n
    n += 1
    return n

## nonlocal
def make():
    n = 0
    def g(x):
        nonlocal n
        n += 1
        return n
    return g
f = make()

## iterator that goes on
import itertools
c = itertools.count()
f = lambda x: next(c)

## what was not shipped
f = lambda x: not_there(x)

## a library that is not known
def f(s):
    import yaml
    return yaml.safe_load(s)

## a method that is not known
f = lambda x: x.frobnicate()

## a method with arguments
f = lambda x, *a: x.frobnicate(*a)

## a method with a keyword
f = lambda x: x.frobnicate(deep=True)
"""
"""Cells, each under its name; each binds `f`."""

CELLS = dict(re.findall(r"^## (.+)\n((?:(?!##).*\n)+)", IMPURE, re.MULTILINE))


def test_there_are_enough_of_them():
    assert len(CELLS) >= 100


@pytest.mark.parametrize("name", CELLS)
def test_a_function_that_may_see_or_change_more_is_not_known_to_be_pure(why, name):
    assert why(CELLS[name])


@pytest.mark.parametrize("function", [open, eval, sqlite3.connect, urllib.request.urlopen, threading.Thread])
def test_a_function_by_its_mere_name(function):
    assert impurity(cloudpickle.dumps((function, "return type")))


def test_what_is_no_pickle_is_not_known_to_be_pure():
    assert "cannot be read" in impurity(b"no pickle")
