"""Functions as people write them for Spark: they are known to be pure, so what they compute is used again."""

from __future__ import annotations

import pytest

ORDINARY = {
    # text
    "clean": "def f(s):\n    return s.strip().lower().replace('-', ' ') if s else None",
    "title": "f = lambda s: ' '.join(w.capitalize() for w in s.split())",
    "regex": "import re\nDIGITS = re.compile(r'\\d+')\ndef f(s):\n    m = DIGITS.search(s)\n    return int(m.group()) if m else 0",
    "regex inside": "def f(s):\n    import re\n    return re.sub(r'[^a-z]+', '_', s, flags=re.IGNORECASE)",
    "accents": "import unicodedata\ndef f(s):\n    n = unicodedata.normalize('NFKD', s)\n"
    "    return ''.join(c for c in n if not unicodedata.combining(c))",
    "punctuation": "import string\nTABLE = str.maketrans('', '', string.punctuation)\ndef f(s):\n    return s.translate(TABLE)",
    "format": "def f(a, b):\n    return f'{a:>10}|{b:.2f}|{a!r}' + '{0:05d}'.format(3) + '%s' % b",
    "html": "import html\nfrom urllib.parse import urlparse, parse_qs, unquote_plus\ndef f(u):\n    p = urlparse(html.unescape(u))\n"
    "    return p.netloc, parse_qs(p.query).get('q', [None])[0], unquote_plus(p.path)",
    "file name": "import os\ndef f(p):\n    return os.path.splitext(os.path.basename(p))[0]",
    "pure path": "from pathlib import PurePosixPath\ndef f(p):\n    return PurePosixPath(p).suffix.lower()",
    "wrap": "import textwrap\ndef f(s):\n    return textwrap.shorten(textwrap.dedent(s), width=20, placeholder='...')",
    "similar": "import difflib\ndef f(a, b):\n    return difflib.SequenceMatcher(None, a, b).ratio()",
    "e-mail": "import re\ndef f(s):\n    if s is None:\n        return False\n    return bool(re.fullmatch(r'[^@]+@[^@]+\\.[a-z]+', s))",
    "hash": "import hashlib, base64\ndef f(s):\n    return base64.b64encode(hashlib.sha256(s.encode('utf-8')).digest()).decode()",
    "csv line": "import csv, io\ndef f(s):\n    return next(csv.reader(io.StringIO(s), delimiter=';'))",
    # dates
    "date": "from datetime import datetime\ndef f(s):\n    try:\n        return datetime.strptime(s, '%Y-%m-%d').date()\n"
    "    except (ValueError, TypeError):\n        return None",
    "weekday": "import datetime as dt\nHOLIDAYS = {dt.date(2024, 1, 1)}\ndef f(d):\n    return d.weekday() < 5 and d not in HOLIDAYS",
    "add months": "import calendar\nfrom datetime import date, timedelta\ndef f(d, n):\n    m = d.month - 1 + n\n"
    "    y, m = d.year + m // 12, m % 12 + 1\n    return date(y, m, min(d.day, calendar.monthrange(y, m)[1])) + timedelta(days=1)",
    "zone": "from zoneinfo import ZoneInfo\nfrom datetime import timezone\nBERLIN = ZoneInfo('Europe/Berlin')\ndef f(t):\n"
    "    return t.replace(tzinfo=timezone.utc).astimezone(BERLIN).isoformat()",
    "time of day": "import datetime\nNOON = datetime.time(12)\ndef f(t):\n    return 'am' if t.time() < NOON else 'pm'",
    "epoch": "import time\ndef f(s):\n    return int(time.mktime(time.strptime(s, '%Y-%m-%d')))",
    # numbers
    "haversine": "from math import radians, sin, cos, asin, sqrt\ndef f(a, b, c, d):\n    a, b, c, d = map(radians, [a, b, c, d])\n"
    "    h = sin((c - a) / 2) ** 2 + cos(a) * cos(c) * sin((d - b) / 2) ** 2\n    return 2 * 6371 * asin(sqrt(h))",
    "decimal": "from decimal import Decimal, ROUND_HALF_UP\ndef f(x):\n    return Decimal(str(x)).quantize(Decimal('0.01'), rounding=ROUND_HALF_UP)",
    "statistics": "import statistics\ndef f(xs):\n    return statistics.mean(xs), statistics.median(xs), statistics.pstdev(xs)",
    "bucket": "import bisect\nLIMITS = [10, 20, 50]\ndef f(x):\n    return bisect.bisect_right(LIMITS, x)",
    "bits": "import struct, binascii\ndef f(x):\n    return binascii.hexlify(struct.pack('>I', x)).decode('ascii')",
    "prime": "def f(n):\n    return n > 1 and all(n % i for i in range(2, int(n ** 0.5) + 1))",
    "fibonacci": "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)",
    # structures
    "json": "import json\ndef f(s):\n    try:\n        return json.loads(s).get('user', {}).get('name')\n    except json.JSONDecodeError:\n        return None",
    "lookup": "NAMES = {'AA': 'American', 'UA': 'United'}\ndef f(c):\n    return NAMES.get(c, 'other')",
    "counter": "from collections import Counter, defaultdict\ndef f(ws):\n    d = defaultdict(list)\n    for w in ws:\n        d[len(w)].append(w)\n"
    "    return Counter(ws).most_common(1)[0][0], sorted(d.items(), key=lambda kv: -kv[0])",
    "pairs": "import itertools, operator\ndef f(xs):\n    return [(k, sum(1 for _ in g)) for k, g in itertools.groupby(sorted(xs), key=operator.itemgetter(0))]",
    "reduce": "from functools import reduce, partial\nadd = partial(lambda a, b, c: a + b * c, c=2)\ndef f(xs):\n    return reduce(add, xs, 0)",
    "heap": "import heapq, copy\ndef f(xs):\n    ys = copy.deepcopy(xs)\n    heapq.heapify(ys)\n    return heapq.nsmallest(3, ys)",
    "row": "def f(r):\n    from pyspark.sql import Row\n    d = r.asDict()\n    d['total'] = r.price * r.quantity\n    return Row(**d)",
    "xml": "import xml.etree.ElementTree as ET\ndef f(s):\n    root = ET.fromstring(s)\n    return [(e.tag, e.attrib.get('id'), e.text) for e in root.iter('item')]",
    "pickle free": "import zlib\ndef f(b):\n    return zlib.decompress(zlib.compress(b, 9)).decode('utf-8', errors='replace')",
    # the user's own
    "helpers": "def clean(s):\n    return s.strip()\ndef shout(s):\n    return clean(s).upper() + MARK\nMARK = '!'\ndef f(s):\n    return shout(s)",
    "closure": "def make(limit, names):\n    def inner(x):\n        return x > limit and names[x % len(names)]\n    return inner\nf = make(3, ['a', 'b'])",
    "class": "class Parser:\n    SEP = ','\n    def __init__(self, skip):\n        self.skip = skip\n    def parse(self, s):\n"
    "        return [p for p in s.split(self.SEP) if p not in self.skip]\n    @staticmethod\n    def first(ps):\n        return ps[0]\n"
    "def f(s):\n    p = Parser({''})\n    return p.first(p.parse(s))",
    "object": "class Scaler:\n    def __init__(self, k):\n        self.k = k\n    def __call__(self, x):\n        return x * self.k\nscale = Scaler(3)\ndef f(x):\n    return scale(x)",
    "bound method": "class Rules:\n    def __init__(self, rules):\n        self.rules = rules\n    def apply(self, x):\n        return [r(x) for r in self.rules]\n"
    "f = Rules([abs, lambda x: x + 1]).apply",
    "dataclass": "from dataclasses import dataclass, asdict, field\n@dataclass\nclass Point:\n    x: int\n    y: int = 0\n    tags: list = field(default_factory=list)\n"
    "    @property\n    def norm(self):\n        return (self.x ** 2 + self.y ** 2) ** 0.5\ndef f(x):\n    return asdict(Point(x, 2)), Point(x).norm",
    "dataclass instance": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Config:\n    limit: int = 5\nCONFIG = Config(7)\ndef f(x):\n    return x < CONFIG.limit",
    "namedtuple": "from collections import namedtuple\nfrom typing import NamedTuple, Optional\nP = namedtuple('P', 'a b')\nclass Q(NamedTuple):\n    c: int\n"
    "ORIGIN = P(0, 0)\ndef f(x) -> Optional[int]:\n    return P(x, 1)._replace(a=2).a + Q(x).c + ORIGIN.b",
    "enum": "import enum\nclass Size(enum.Enum):\n    SMALL = 1\n    LARGE = 2\n    @classmethod\n    def of(cls, x):\n        return cls.SMALL if x < 10 else cls.LARGE\ndef f(x):\n    return Size.of(x).name",
    "generator": "def f(xs):\n    def pairs(ys):\n        it = iter(ys)\n        for a in it:\n            yield a, next(it, None)\n    return list(pairs(xs))",
    "decorated": "import functools\ndef safe(g):\n    @functools.wraps(g)\n    def wrapper(*args, **kwargs):\n        try:\n            return g(*args, **kwargs)\n"
    "        except Exception:\n            return None\n    return wrapper\n@safe\ndef f(x):\n    return 1 / x",
    "cached": "import functools\ndef f(x):\n    @functools.lru_cache(maxsize=None)\n    def fib(n):\n        return n if n < 2 else fib(n - 1) + fib(n - 2)\n    return fib(x)",
    "exception": "class BadRow(ValueError):\n    def __init__(self, row):\n        super().__init__(f'bad row {row}')\n        self.row = row\ndef f(x):\n    if x < 0:\n        raise BadRow(x)\n    return x",
    "match": "def f(kind, x):\n    table = {'double': lambda v: v * 2, 'square': lambda v: v ** 2}\n    return table.get(kind, lambda v: v)(x)",
    "attribute by name": "def f(r):\n    return getattr(r, 'amount', 0) + (r.tax if hasattr(r, 'tax') else 0)",
    "print and warn": "import warnings, logging\nlog = logging.getLogger('job')\ndef f(x):\n    if x is None:\n        warnings.warn('none')\n"
    "        log.warning('a row without x')\n        print('none')\n    return x",
    # numpy and pandas
    "numpy": "import numpy as np\ndef f(xs):\n    v = np.asarray(xs, dtype=np.float64)\n    return float(np.linalg.norm(v - v.mean()) / np.sqrt(len(v)))",
    "weights": "import numpy as np\nW = np.arange(6, dtype=float).reshape(2, 3)\ndef f(xs):\n    return (W @ np.array(xs)).clip(0).tolist()",
    "series": "import pandas as pd\ndef f(s: pd.Series) -> pd.Series:\n    return s.str.strip().str.lower().fillna('').map(len)",
    "series of dates": "import pandas as pd\ndef f(s: pd.Series) -> pd.Series:\n    return pd.to_datetime(s, errors='coerce').dt.strftime('%Y-%m')",
    "series iterator": "from typing import Iterator\nimport pandas as pd\ndef f(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:\n    for b in batches:\n        yield (b - b.mean()) / b.std()",
    "mapInPandas": "def f(frames):\n    for pdf in frames:\n        pdf = pdf[pdf.amount > 0]\n        yield pdf.assign(total=pdf.amount * 1.19, who=pdf['name'].str.upper())",
    "applyInPandas": "import pandas as pd\ndef f(key, pdf):\n    out = pdf.sort_values('day').reset_index(drop=True)\n    out['change'] = out.value.diff().fillna(0)\n"
    "    out['z'] = out.value.rolling(3, min_periods=1).mean()\n    return out[['day', 'change', 'z']].assign(k=key[0])",
    "cogroup": "import pandas as pd\ndef f(a, b):\n    return pd.merge_asof(a.sort_values('t'), b.sort_values('t'), on='t', by='id')",
    "aggregate": "def f(pdf):\n    return pdf.groupby('k', as_index=False).agg({'v': ['sum', 'mean'], 'w': 'max'}).apply(lambda c: c * 2)",
    "regression": "import numpy as np, pandas as pd\ndef f(pdf):\n    slope, base = np.polyfit(pdf.x, pdf.y, 1)\n"
    "    return pd.DataFrame([{'slope': slope, 'base': base, 'n': len(pdf)}])",
    "where": "import numpy as np\ndef f(pdf):\n    pdf['size'] = np.where(pdf.v > pdf.v.median(), 'big', 'small')\n    return pdf.query('v > 0 and size == \"big\"')",
    "table": "import pandas as pd\nRATES = pd.DataFrame({'c': ['EUR', 'USD'], 'r': [1.0, 0.9]}).set_index('c')\ndef f(pdf):\n    return pdf.join(RATES, on='c')",
    "arrow": "import pyarrow as pa, pyarrow.compute as pc\ndef f(batches):\n    for b in batches:\n        yield b.append_column('n', pc.add(b.column('a'), pa.scalar(1)))",
    "to text": "def f(pdf):\n    return pdf.to_json(orient='records')",
    # RDDs
    "words": "import re\ndef f(line):\n    return [(w, 1) for w in re.findall(r'\\w+', line.lower())]",
    "partitions": "def f(rows):\n    total = 0\n    for row in rows:\n        total += row[1]\n    yield total",
}  # fmt: skip


def test_there_are_enough_of_them():
    assert len(ORDINARY) >= 60


@pytest.mark.parametrize("source", ORDINARY.values(), ids=ORDINARY)
def test_an_ordinary_function_is_known_to_be_pure(why, source):
    assert why(source) is None
