"""Lists the private names by which pickles refer to what is known to be pure."""

from __future__ import annotations

MODULES = {
    "_bisect": "bisect",
    "_collections_abc": "collections.abc",
    "_csv": "csv",
    "_decimal": "decimal",
    "_functools": "functools",
    "_heapq": "heapq",
    "_io": "io",
    "_operator": "operator",
    "_pydecimal": "decimal",
    "_statistics": "statistics",
    "_struct": "struct",
    "dateutil.parser.isoparser": "dateutil.parser",
    "dateutil.tz.tz": "dateutil.tz",
    "ntpath": "posixpath",
    "numpy._core": "numpy",
    "numpy.core": "numpy",
    "numpy.fft._pocketfft": "numpy.fft",
    "numpy.lib": "numpy",
    "numpy.linalg._linalg": "numpy.linalg",
    "numpy.linalg.linalg": "numpy.linalg",
    "numpy.ma.core": "numpy.ma",
    "numpy.ma.extras": "numpy.ma",
    "os.path": "posixpath",
    "pandas._libs": "pandas",
    "pandas._libs.tslibs.offsets": "pandas.tseries.offsets",
    "pandas.core": "pandas",
    "pathlib._local": "pathlib",
    "pyarrow._compute": "pyarrow.compute",
    "pyarrow.lib": "pyarrow",
    "pytz.tzinfo": "pytz",
}
"""Where modules define what other modules offer; applies to all modules inside them too."""

MAKERS = {
    "_codecs": "encode",
    "_collections": "_tuplegetter",
    "_hashlib": "openssl_md5 openssl_sha1 openssl_sha224 openssl_sha256 openssl_sha384 openssl_sha512",
    "collections": "_tuplegetter",
    "copyreg": "__newobj__ __newobj_ex__ _reconstructor",
    "dataclasses": "_DataclassParams _FIELD_BASE _HAS_DEFAULT_FACTORY_CLASS _MISSING_TYPE _replace",
    "logging": "getLogger",
    "numpy": "dtype ndarray",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
    "numpy.core.multiarray": "_reconstruct scalar",
    "numpy.core.numeric": "_frombuffer",
    "numpy.ma.core": "_mareconstruct",
    "pandas._libs.arrays": "__pyx_unpickle_NDArrayBacked",
    "pandas._libs.internals": "_unpickle_block",
    "pyarrow.lib": "_restore_array py_buffer",
    "pyspark.mllib.linalg": "_convert_to_vector",
    "pyspark.sql.types": "_create_row _parse_datatype_json_string",
    "pytz": "_UTC _p",
    "re": "_compile",
}
"""Functions that only recreate objects."""

DATA = (
    "pandas._libs.interval",
    "pandas._libs.missing",
    "pandas._libs.tslibs",
    "pandas.core.arrays",
    "pandas.core.dtypes",
    "pandas.core.indexes",
    "pandas.core.internals",
)
"""Modules that hold only kinds of data, and what recreates them."""
