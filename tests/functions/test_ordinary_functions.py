"""Functions as people write them for Spark: they are known to be pure, so what they compute is used again."""

from __future__ import annotations

import re

import pytest

ORDINARY = r"""
### text

## clean
def f(s):
    return s.strip().lower().replace('-', ' ') if s else None

## title
f = lambda s: ' '.join(w.capitalize() for w in s.split())

## regex
import re
DIGITS = re.compile(r'\d+')
def f(s):
    m = DIGITS.search(s)
    return int(m.group()) if m else 0

## regex inside
def f(s):
    import re
    return re.sub(r'[^a-z]+', '_', s, flags=re.IGNORECASE)

## accents
import unicodedata
def f(s):
    n = unicodedata.normalize('NFKD', s)
    return ''.join(c for c in n if not unicodedata.combining(c))

## punctuation
import string
TABLE = str.maketrans('', '', string.punctuation)
def f(s):
    return s.translate(TABLE)

## format
def f(a, b):
    return f'{a:>10}|{b:.2f}|{a!r}' + '{0:05d}'.format(3) + '%s' % b

## html
import html
from urllib.parse import urlparse, parse_qs, unquote_plus
def f(u):
    p = urlparse(html.unescape(u))
    return p.netloc, parse_qs(p.query).get('q', [None])[0], unquote_plus(p.path)

## file name
import os
def f(p):
    return os.path.splitext(os.path.basename(p))[0]

## pure path
from pathlib import PurePosixPath
def f(p):
    return PurePosixPath(p).suffix.lower()

## wrap
import textwrap
def f(s):
    return textwrap.shorten(textwrap.dedent(s), width=20, placeholder='...')

## similar
import difflib
def f(a, b):
    return difflib.SequenceMatcher(None, a, b).ratio()

## e-mail
import re
def f(s):
    if s is None:
        return False
    return bool(re.fullmatch(r'[^@]+@[^@]+\.[a-z]+', s))

## hash
import hashlib, base64
def f(s):
    return base64.b64encode(hashlib.sha256(s.encode('utf-8')).digest()).decode()

## csv line
import csv, io
def f(s):
    return next(csv.reader(io.StringIO(s), delimiter=';'))

### dates

## date
from datetime import datetime
def f(s):
    try:
        return datetime.strptime(s, '%Y-%m-%d').date()
    except (ValueError, TypeError):
        return None

## weekday
import datetime as dt
HOLIDAYS = {dt.date(2024, 1, 1)}
def f(d):
    return d.weekday() < 5 and d not in HOLIDAYS

## add months
import calendar
from datetime import date, timedelta
def f(d, n):
    m = d.month - 1 + n
    y, m = d.year + m // 12, m % 12 + 1
    return date(y, m, min(d.day, calendar.monthrange(y, m)[1])) + timedelta(days=1)

## zone
from zoneinfo import ZoneInfo
from datetime import timezone
BERLIN = ZoneInfo('Europe/Berlin')
def f(t):
    return t.replace(tzinfo=timezone.utc).astimezone(BERLIN).isoformat()

## time of day
import datetime
NOON = datetime.time(12)
def f(t):
    return 'am' if t.time() < NOON else 'pm'

## epoch
import time
def f(s):
    return int(time.mktime(time.strptime(s, '%Y-%m-%d')))

### numbers

## haversine
from math import radians, sin, cos, asin, sqrt
def f(a, b, c, d):
    a, b, c, d = map(radians, [a, b, c, d])
    h = sin((c - a) / 2) ** 2 + cos(a) * cos(c) * sin((d - b) / 2) ** 2
    return 2 * 6371 * asin(sqrt(h))

## decimal
from decimal import Decimal, ROUND_HALF_UP
def f(x):
    return Decimal(str(x)).quantize(Decimal('0.01'), rounding=ROUND_HALF_UP)

## statistics
import statistics
def f(xs):
    return statistics.mean(xs), statistics.median(xs), statistics.pstdev(xs)

## bucket
import bisect
LIMITS = [10, 20, 50]
def f(x):
    return bisect.bisect_right(LIMITS, x)

## bits
import struct, binascii
def f(x):
    return binascii.hexlify(struct.pack('>I', x)).decode('ascii')

## prime
def f(n):
    return n > 1 and all(n % i for i in range(2, int(n ** 0.5) + 1))

## fibonacci
def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)

### structures

## json
import json
def f(s):
    try:
        return json.loads(s).get('user', {}).get('name')
    except json.JSONDecodeError:
        return None

## lookup
NAMES = {'AA': 'American', 'UA': 'United'}
def f(c):
    return NAMES.get(c, 'other')

## counter
from collections import Counter, defaultdict
def f(ws):
    d = defaultdict(list)
    for w in ws:
        d[len(w)].append(w)
    return Counter(ws).most_common(1)[0][0], sorted(d.items(), key=lambda kv: -kv[0])

## pairs
import itertools, operator
def f(xs):
    return [(k, sum(1 for _ in g)) for k, g in itertools.groupby(sorted(xs), key=operator.itemgetter(0))]

## reduce
from functools import reduce, partial
add = partial(lambda a, b, c: a + b * c, c=2)
def f(xs):
    return reduce(add, xs, 0)

## heap
import heapq, copy
def f(xs):
    ys = copy.deepcopy(xs)
    heapq.heapify(ys)
    return heapq.nsmallest(3, ys)

## row
def f(r):
    from pyspark.sql import Row
    d = r.asDict()
    d['total'] = r.price * r.quantity
    return Row(**d)

## xml
import xml.etree.ElementTree as ET
def f(s):
    root = ET.fromstring(s)
    return [(e.tag, e.attrib.get('id'), e.text) for e in root.iter('item')]

## pickle free
import zlib
def f(b):
    return zlib.decompress(zlib.compress(b, 9)).decode('utf-8', errors='replace')

### the user's own

## helpers
def clean(s):
    return s.strip()
def shout(s):
    return clean(s).upper() + MARK
MARK = '!'
def f(s):
    return shout(s)

## closure
def make(limit, names):
    def inner(x):
        return x > limit and names[x % len(names)]
    return inner
f = make(3, ['a', 'b'])

## class
class Parser:
    SEP = ','
    def __init__(self, skip):
        self.skip = skip
    def parse(self, s):
        return [p for p in s.split(self.SEP) if p not in self.skip]
    @staticmethod
    def first(ps):
        return ps[0]
def f(s):
    p = Parser({''})
    return p.first(p.parse(s))

## object
class Scaler:
    def __init__(self, k):
        self.k = k
    def __call__(self, x):
        return x * self.k
scale = Scaler(3)
def f(x):
    return scale(x)

## bound method
class Rules:
    def __init__(self, rules):
        self.rules = rules
    def apply(self, x):
        return [r(x) for r in self.rules]
f = Rules([abs, lambda x: x + 1]).apply

## dataclass
from dataclasses import dataclass, asdict, field
@dataclass
class Point:
    x: int
    y: int = 0
    tags: list = field(default_factory=list)
    @property
    def norm(self):
        return (self.x ** 2 + self.y ** 2) ** 0.5
def f(x):
    return asdict(Point(x, 2)), Point(x).norm

## dataclass instance
from dataclasses import dataclass
@dataclass(frozen=True)
class Config:
    limit: int = 5
CONFIG = Config(7)
def f(x):
    return x < CONFIG.limit

## namedtuple
from collections import namedtuple
from typing import NamedTuple, Optional
P = namedtuple('P', 'a b')
class Q(NamedTuple):
    c: int
ORIGIN = P(0, 0)
def f(x) -> Optional[int]:
    return P(x, 1)._replace(a=2).a + Q(x).c + ORIGIN.b

## enum
import enum
class Size(enum.Enum):
    SMALL = 1
    LARGE = 2
    @classmethod
    def of(cls, x):
        return cls.SMALL if x < 10 else cls.LARGE
def f(x):
    return Size.of(x).name

## generator
def f(xs):
    def pairs(ys):
        it = iter(ys)
        for a in it:
            yield a, next(it, None)
    return list(pairs(xs))

## decorated
import functools
def safe(g):
    @functools.wraps(g)
    def wrapper(*args, **kwargs):
        try:
            return g(*args, **kwargs)
        except Exception:
            return None
    return wrapper
@safe
def f(x):
    return 1 / x

## cached
import functools
def f(x):
    @functools.lru_cache(maxsize=None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    return fib(x)

## exception
class BadRow(ValueError):
    def __init__(self, row):
        super().__init__(f'bad row {row}')
        self.row = row
def f(x):
    if x < 0:
        raise BadRow(x)
    return x

## match
def f(kind, x):
    table = {'double': lambda v: v * 2, 'square': lambda v: v ** 2}
    return table.get(kind, lambda v: v)(x)

## attribute by name
def f(r):
    return getattr(r, 'amount', 0) + (r.tax if hasattr(r, 'tax') else 0)

## print and warn
import warnings, logging
log = logging.getLogger('job')
def f(x):
    if x is None:
        warnings.warn('none')
        log.warning('a row without x')
        print('none')
    return x

### numpy and pandas

## numpy
import numpy as np
def f(xs):
    v = np.asarray(xs, dtype=np.float64)
    return float(np.linalg.norm(v - v.mean()) / np.sqrt(len(v)))

## weights
import numpy as np
W = np.arange(6, dtype=float).reshape(2, 3)
def f(xs):
    return (W @ np.array(xs)).clip(0).tolist()

## series
import pandas as pd
def f(s: pd.Series) -> pd.Series:
    return s.str.strip().str.lower().fillna('').map(len)

## series of dates
import pandas as pd
def f(s: pd.Series) -> pd.Series:
    return pd.to_datetime(s, errors='coerce').dt.strftime('%Y-%m')

## series iterator
from typing import Iterator
import pandas as pd
def f(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    for b in batches:
        yield (b - b.mean()) / b.std()

## mapInPandas
def f(frames):
    for pdf in frames:
        pdf = pdf[pdf.amount > 0]
        yield pdf.assign(total=pdf.amount * 1.19, who=pdf['name'].str.upper())

## applyInPandas
import pandas as pd
def f(key, pdf):
    out = pdf.sort_values('day').reset_index(drop=True)
    out['change'] = out.value.diff().fillna(0)
    out['z'] = out.value.rolling(3, min_periods=1).mean()
    return out[['day', 'change', 'z']].assign(k=key[0])

## cogroup
import pandas as pd
def f(a, b):
    return pd.merge_asof(a.sort_values('t'), b.sort_values('t'), on='t', by='id')

## aggregate
def f(pdf):
    return pdf.groupby('k', as_index=False).agg({'v': ['sum', 'mean'], 'w': 'max'}).apply(lambda c: c * 2)

## regression
import numpy as np, pandas as pd
def f(pdf):
    slope, base = np.polyfit(pdf.x, pdf.y, 1)
    return pd.DataFrame([{'slope': slope, 'base': base, 'n': len(pdf)}])

## where
import numpy as np
def f(pdf):
    pdf['size'] = np.where(pdf.v > pdf.v.median(), 'big', 'small')
    return pdf.query('v > 0 and size == "big"')

## table
import pandas as pd
RATES = pd.DataFrame({'c': ['EUR', 'USD'], 'r': [1.0, 0.9]}).set_index('c')
def f(pdf):
    return pdf.join(RATES, on='c')

## arrow
import pyarrow as pa, pyarrow.compute as pc
def f(batches):
    for b in batches:
        yield b.append_column('n', pc.add(b.column('a'), pa.scalar(1)))

## to text
def f(pdf):
    return pdf.to_json(orient='records')

### RDDs

## words
import re
def f(line):
    return [(w, 1) for w in re.findall(r'\w+', line.lower())]

## partitions
def f(rows):
    total = 0
    for row in rows:
        total += row[1]
    yield total
"""
"""Cells, each under its name; each binds `f`."""

CELLS = dict(re.findall(r"^## (.+)\n((?:(?!##).*\n)+)", ORDINARY, re.MULTILINE))


def test_there_are_enough_of_them():
    assert len(CELLS) >= 60


@pytest.mark.parametrize("name", CELLS)
def test_an_ordinary_function_is_known_to_be_pure(why, name):
    assert why(CELLS[name]) is None
