"""Lists what is known to be pure in Python's standard library: by module, its functions, classes and constants.

What is not here may be pure too; it is not known to be, and a function that names it is computed every time. Left out
on purpose is what reads or writes files, asks a clock, chance, the network or the system, runs text as code, or leads
to any of these. If one word decides between both (``datetime.now``, ``Path.read_text``), the class is here and the
method is not: see `methods`. ``getattr``, ``operator.attrgetter`` and ``methodcaller`` are pure for names that are
constants (`code_references`).

Keep the names in alphabetical order; names of all versions from Python 3.10 on.
"""

from __future__ import annotations

STANDARD_LIBRARY = {
    "abc": """
        ABC ABCMeta abstractclassmethod abstractmethod abstractproperty abstractstaticmethod get_cache_token
        update_abstractmethods
    """,
    "array": "array typecodes",
    "ast": "literal_eval",
    "base64": """
        a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode
        b64encode b85decode b85encode decodebytes encodebytes standard_b64decode standard_b64encode
        urlsafe_b64decode urlsafe_b64encode z85decode z85encode
    """,
    "binascii": """
        a2b_base64 a2b_hex a2b_hqx a2b_qp a2b_uu b2a_base64 b2a_hex b2a_hqx b2a_qp b2a_uu crc32 crc_hqx Error
        hexlify Incomplete rlecode_hqx rledecode_hqx unhexlify
    """,
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "builtins": """
        abs aiter all anext any ArithmeticError ascii AssertionError AttributeError BaseException
        BaseExceptionGroup bin BlockingIOError bool BrokenPipeError BufferError bytearray bytes BytesWarning
        callable ChildProcessError chr classmethod complex ConnectionAbortedError ConnectionError
        ConnectionRefusedError ConnectionResetError delattr DeprecationWarning dict dir divmod Ellipsis
        EncodingWarning enumerate EnvironmentError EOFError Exception ExceptionGroup FileExistsError
        FileNotFoundError filter float FloatingPointError format frozenset FutureWarning GeneratorExit hasattr
        hash hex ImportError ImportWarning IndentationError IndexError int InterruptedError IOError
        IsADirectoryError isinstance issubclass iter KeyboardInterrupt KeyError len list LookupError map max
        MemoryError memoryview min ModuleNotFoundError NameError next NotADirectoryError NotImplemented
        NotImplementedError object oct ord OSError OverflowError PendingDeprecationWarning PermissionError pow
        print ProcessLookupError property PythonFinalizationError range RecursionError ReferenceError repr
        ResourceWarning reversed round RuntimeError RuntimeWarning set setattr slice sorted staticmethod
        StopAsyncIteration StopIteration str sum super SyntaxError SyntaxWarning SystemError SystemExit
        TabError TimeoutError tuple type TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError
        UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError zip
    """,
    "bz2": "BZ2Compressor BZ2Decompressor compress decompress",
    "calendar": """
        APRIL AUGUST Calendar calendar Day day_abbr day_name DECEMBER FEBRUARY February firstweekday FRIDAY
        HTMLCalendar IllegalMonthError IllegalWeekdayError isleap JANUARY January JULY JUNE leapdays MARCH MAY
        mdays MONDAY Month month month_abbr month_name monthcalendar monthrange NOVEMBER OCTOBER SATURDAY
        SEPTEMBER SUNDAY TextCalendar THURSDAY timegm TUESDAY WEDNESDAY weekday weekheader
    """,
    "cmath": """
        acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10 nan
        nanj phase pi polar rect sin sinh sqrt tan tanh tau
    """,
    "codecs": """
        BOM_UTF16 BOM_UTF16_BE BOM_UTF16_LE BOM_UTF32 BOM_UTF32_BE BOM_UTF32_LE BOM_UTF8 decode encode
        getdecoder getencoder iterdecode iterencode lookup
    """,
    "collections": "ChainMap Counter defaultdict deque namedtuple OrderedDict UserDict UserList UserString",
    "collections.abc": """
        AsyncGenerator AsyncIterable AsyncIterator Awaitable Buffer ByteString Callable Collection Container
        Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping
        MutableSequence MutableSet Reversible Sequence Set Sized ValuesView
    """,
    "colorsys": "hls_to_rgb hsv_to_rgb rgb_to_hls rgb_to_hsv rgb_to_yiq yiq_to_rgb",
    "contextlib": "AbstractContextManager closing contextmanager ExitStack nullcontext suppress",
    "copy": "copy deepcopy Error replace",
    "csv": """
        __version__ Dialect DictReader DictWriter Error excel excel_tab get_dialect list_dialects QUOTE_ALL
        QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC QUOTE_NOTNULL QUOTE_STRINGS reader Sniffer unix_dialect
        writer
    """,
    "dataclasses": """
        asdict astuple dataclass Field field fields FrozenInstanceError InitVar is_dataclass KW_ONLY
        make_dataclass MISSING replace
    """,
    "datetime": "date datetime MAXYEAR MINYEAR time timedelta timezone tzinfo UTC",
    "decimal": """
        __version__ BasicContext Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple
        DefaultContext DivisionByZero DivisionImpossible DivisionUndefined ExtendedContext FloatOperation
        getcontext HAVE_CONTEXTVAR HAVE_THREADS Inexact InvalidContext InvalidOperation localcontext MAX_EMAX
        MAX_PREC MIN_EMIN MIN_ETINY Overflow ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN
        ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded setcontext Subnormal Underflow
    """,
    "difflib": """
        context_diff diff_bytes Differ get_close_matches HtmlDiff IS_CHARACTER_JUNK IS_LINE_JUNK Match ndiff
        restore SequenceMatcher unified_diff
    """,
    "email.utils": """
        collapse_rfc2231_value decode_params decode_rfc2231 encode_rfc2231 format_datetime formataddr
        getaddresses mktime_tz parseaddr parsedate parsedate_to_datetime parsedate_tz unquote
    """,
    "enum": """
        auto bin CONFORM CONTINUOUS EJECT Enum EnumCheck EnumDict EnumMeta EnumType Flag FlagBoundary
        global_enum_repr global_flag_repr global_str IntEnum IntFlag KEEP member NAMED_FLAGS nonmember
        pickle_by_enum_name pickle_by_global_name property ReprEnum show_flag_values StrEnum STRICT UNIQUE
        unique verify
    """,
    "fnmatch": "filter fnmatch fnmatchcase translate",
    "fractions": "Fraction",
    "functools": """
        cache cached_property cmp_to_key lru_cache partial partialmethod reduce singledispatch
        singledispatchmethod total_ordering update_wrapper WRAPPER_ASSIGNMENTS WRAPPER_UPDATES wraps
    """,
    "graphlib": "CycleError TopologicalSorter",
    "gzip": "BadGzipFile decompress",
    "hashlib": """
        algorithms_available algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac sha1 sha224 sha256
        sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256
    """,
    "heapq": "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest",
    "hmac": "compare_digest digest HMAC new",
    "html": "escape unescape",
    "html.entities": "codepoint2name entitydefs html5 name2codepoint",
    "html.parser": "HTMLParser",
    "io": "BytesIO SEEK_CUR SEEK_END SEEK_SET StringIO",
    "ipaddress": """
        __version__ AddressValueError collapse_addresses get_mixed_type_key ip_address ip_interface ip_network
        IPv4Address IPv4Interface IPV4LENGTH IPv4Network IPv6Address IPv6Interface IPV6LENGTH IPv6Network
        NetmaskValueError summarize_address_range v4_int_to_packed v6_int_to_packed
    """,
    "itertools": """
        accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
    """,
    "json": "__version__ detect_encoding dump dumps JSONDecodeError JSONDecoder JSONEncoder load loads",
    "json.decoder": "JSONDecodeError JSONDecoder",
    "json.encoder": "JSONEncoder",
    "keyword": "iskeyword issoftkeyword kwlist softkwlist",
    "logging": """
        CRITICAL critical DEBUG debug ERROR error exception FATAL getLevelName getLogger INFO info log NOTSET
        WARN WARNING warning
    """,
    "lzma": "compress decompress LZMACompressor LZMADecompressor LZMAError",
    "math": """
        acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp
        exp2 expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan
        isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin
        sinh sqrt sumprod tan tanh tau trunc ulp
    """,
    "numbers": "Complex Integral Number Rational Real",
    "operator": """
        abs add and_ call concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat
        ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not isub
        itemgetter itruediv ixor le length_hint lshift lt matmul mod mul ne neg not_ or_ pos pow rshift
        setitem sub truediv truth xor
    """,
    "os": "altsep curdir extsep fspath linesep pardir pathsep sep",
    "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath",
    "posixpath": """
        altsep basename commonpath commonprefix curdir dirname extsep isabs join normcase normpath pardir
        pathsep sep split splitdrive splitext splitroot
    """,
    "pprint": "isreadable isrecursive pformat saferepr",
    "quopri": "decodestring encodestring",
    "re": """
        __version__ A ASCII compile DEBUG DOTALL error escape findall finditer fullmatch I IGNORECASE L LOCALE
        M Match match MULTILINE NOFLAG Pattern PatternError purge RegexFlag S search split sub subn T TEMPLATE
        U UNICODE VERBOSE X
    """,
    "reprlib": "recursive_repr Repr repr",
    "shlex": "join quote split",
    "statistics": """
        correlation covariance fmean geometric_mean harmonic_mean kde linear_regression mean median
        median_grouped median_high median_low mode multimode NormalDist pstdev pvariance quantiles
        StatisticsError stdev variance
    """,
    "string": """
        ascii_letters ascii_lowercase ascii_uppercase capwords digits Formatter hexdigits octdigits printable
        punctuation Template whitespace
    """,
    "stringprep": """
        b1_set b3_exceptions c22_specials c6_set c7_set c8_set c9_set in_table_a1 in_table_b1 in_table_c11
        in_table_c11_c12 in_table_c12 in_table_c21 in_table_c21_c22 in_table_c22 in_table_c3 in_table_c4
        in_table_c5 in_table_c6 in_table_c7 in_table_c8 in_table_c9 in_table_d1 in_table_d2 map_table_b2
        map_table_b3 unicodedata
    """,
    "struct": "calcsize error iter_unpack pack pack_into Struct unpack unpack_from",
    "sys": """
        byteorder exc_info float_info getrecursionlimit getsizeof hash_info int_info intern maxsize maxunicode
        version version_info
    """,
    "textwrap": "dedent fill indent shorten TextWrapper wrap",
    "time": "mktime sleep strptime struct_time",
    "traceback": "format_exc format_exception format_exception_only format_tb print_exc",
    "types": """
        BuiltinFunctionType EllipsisType FunctionType GeneratorType GenericAlias LambdaType MappingProxyType
        NoneType NotImplementedType SimpleNamespace UnionType
    """,
    "typing": """
        AbstractSet Annotated Any AnyStr assert_never assert_type AsyncContextManager AsyncGenerator
        AsyncIterable AsyncIterator Awaitable BinaryIO ByteString Callable cast ChainMap ClassVar
        clear_overloads Collection Concatenate Container ContextManager Coroutine Counter dataclass_transform
        DefaultDict Deque Dict Final final FrozenSet Generator Generic get_args get_origin get_overloads
        get_protocol_members Hashable IO is_protocol is_typeddict ItemsView Iterable Iterator KeysView List
        Literal LiteralString Mapping MappingView Match MutableMapping MutableSequence MutableSet NamedTuple
        Never NewType no_type_check no_type_check_decorator NoDefault NoReturn NotRequired Optional
        OrderedDict overload override ParamSpec ParamSpecArgs ParamSpecKwargs Pattern Protocol ReadOnly
        Required reveal_type Reversible runtime_checkable Self Sequence Set Sized SupportsAbs SupportsBytes
        SupportsComplex SupportsFloat SupportsIndex SupportsInt SupportsRound Text TextIO Tuple Type
        TYPE_CHECKING TypeAlias TypeAliasType TypedDict TypeGuard TypeIs TypeVar TypeVarTuple Union Unpack
        ValuesView
    """,
    "unicodedata": """
        bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup
        mirrored name normalize numeric UCD ucd_3_2_0 unidata_version
    """,
    "urllib.parse": """
        DefragResult DefragResultBytes parse_qs parse_qsl ParseResult ParseResultBytes quote quote_from_bytes
        quote_plus SplitResult SplitResultBytes unquote unquote_plus unquote_to_bytes urldefrag urlencode
        urljoin urlparse urlsplit urlunparse urlunsplit
    """,
    "uuid": """
        NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 RESERVED_FUTURE RESERVED_MICROSOFT
        RESERVED_NCS RFC_4122 SafeUUID UUID uuid3 uuid5
    """,
    "warnings": "catch_warnings filterwarnings simplefilter warn",
    "xml.etree.ElementTree": """
        canonicalize Comment Element fromstring fromstringlist indent iselement ParseError PI
        ProcessingInstruction QName SubElement tostring tostringlist XML XMLID
    """,
    "xml.sax.saxutils": "escape quoteattr unescape",
    "zlib": """
        __version__ adler32 compress compressobj crc32 decompress decompressobj DEF_BUF_SIZE DEF_MEM_LEVEL
        DEFLATED error MAX_WBITS Z_BEST_COMPRESSION Z_BEST_SPEED Z_BLOCK Z_DEFAULT_COMPRESSION
        Z_DEFAULT_STRATEGY Z_FILTERED Z_FINISH Z_FIXED Z_FULL_FLUSH Z_HUFFMAN_ONLY Z_NO_COMPRESSION Z_NO_FLUSH
        Z_PARTIAL_FLUSH Z_RLE Z_SYNC_FLUSH Z_TREES ZLIB_RUNTIME_VERSION ZLIB_VERSION
    """,
    "zoneinfo": "ZoneInfo ZoneInfoNotFoundError",
}
