"""Lists what is known to be pure in numpy, pandas, pyarrow and date libraries: by module, its functions and classes.

Left out on purpose: readers and writers, chance (``numpy.random``, ``pyarrow.compute.random``), clocks
(``dateutil.parser.parse`` defaults to today), what runs text as code (``pandas.eval``), what is registered by name.
Methods are in `methods`. Names of all releases since numpy 1.26, pandas 2.0 and pyarrow 15; keep them in alphabetical
order.
"""

from __future__ import annotations

LIBRARIES = {
    "dateutil.parser": "isoparse ParserError",
    "dateutil.relativedelta": "FR MO relativedelta SA SU TH TU WE",
    "dateutil.tz": "gettz tzoffset tzutc UTC",
    "numpy": """
        abs absolute acos acosh add all allclose alltrue amax amin angle any append apply_along_axis
        apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition
        argsort argwhere around array array2string array_equal array_equiv array_repr array_split array_str
        asanyarray asarray asarray_chkfinite ascontiguousarray asfarray asfortranarray asin asinh asmatrix
        astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett base_repr binary_repr
        bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor blackman block bmat bool bool8 bool_ broadcast broadcast_arrays
        broadcast_shapes broadcast_to busday_count busday_offset busdaycalendar byte bytes_ c_ can_cast cbrt
        cdouble ceil character choose clip clongdouble column_stack common_type complex128 complex256
        complex64 complex_ complexfloating compress concat concatenate conj conjugate convolve copy copysign
        copyto corrcoef correlate cos cosh count_nonzero cov cross csingle cumprod cumproduct cumsum
        cumulative_prod cumulative_sum datetime64 datetime_as_string datetime_data deg2rad degrees delete diag
        diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot double dsplit dstack
        dtype e ediff1d einsum einsum_path empty empty_like equal errstate euler_gamma exp exp2 expand_dims
        expm1 extract eye fabs False_ fill_diagonal find_common_type finfo fix flatiter flatnonzero flexible
        flip fliplr flipud float128 float16 float32 float64 float96 float_ float_power floating floor
        floor_divide fmax fmin fmod format_float_positional format_float_scientific frexp frombuffer
        fromfunction fromiter frompyfunc fromstring full full_like gcd generic geomspace get_printoptions
        getbufsize geterr geterrcall gradient greater greater_equal half hamming hanning heaviside histogram
        histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo imag in1d index_exp
        indices inexact Inf inf inner insert int0 int16 int32 int64 int8 int_ intc integer interp intersect1d
        intp invert is_busday isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan isnat
        isneginf isposinf isreal isrealobj isscalar issubclass_ issubdtype issubsctype iterable ix_ kaiser
        kron lcm ldexp left_shift less less_equal lexsort linspace little_endian log log10 log1p log2
        logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace long longdouble longlong
        mask_indices mat matmul matrix matrix_transpose matvec max maximum maximum_sctype mean median meshgrid
        mgrid min min_scalar_type minimum mintypecode mod modf moveaxis msort multiply NAN NaN nan nan_to_num
        nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod
        nanquantile nanstd nansum nanvar nbytes ndarray ndenumerate ndim ndindex nditer negative nested_iters
        newaxis nextafter NINF nonzero not_equal number obj2sctype object0 object_ ogrid ones ones_like outer
        packbits pad partition percentile permute_dims pi piecewise PINF place poly poly1d polyadd polyder
        polydiv polyfit polyint polymul polysub polyval positive pow power printoptions prod product
        promote_types ptp put put_along_axis putmask quantile r_ rad2deg radians ravel ravel_multi_index real
        real_if_close recarray reciprocal record remainder repeat require reshape resize result_type
        right_shift rint roll rollaxis roots rot90 round round_ row_stack s_ ScalarType sctype2char sctypeDict
        sctypes searchsorted select setdiff1d setxor1d shape short sign signbit signedinteger sin sinc single
        sinh size sometrue sort sort_complex spacing split sqrt square squeeze stack std str_ string_ subtract
        sum swapaxes take take_along_axis tan tanh tensordot tile timedelta64 trace transpose trapezoid trapz
        tri tril tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from True_
        true_divide trunc typecodes typename ubyte ufunc uint uint0 uint16 uint32 uint64 uint8 uintc uintp
        ulong ulonglong unicode_ union1d unique unique_all unique_counts unique_inverse unique_values
        unpackbits unravel_index unsignedinteger unstack unwrap ushort vander var vdot vecdot vecmat vectorize
        void vsplit vstack where zeros zeros_like
    """,
    "numpy.char": """
        add array asarray capitalize center chararray compare_chararrays count decode encode endswith equal
        expandtabs find greater greater_equal index isalnum isalpha isdecimal isdigit islower isnumeric
        isspace istitle isupper join less less_equal ljust lower lstrip mod multiply not_equal partition
        replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith str_len strip swapcase
        title translate upper zfill
    """,
    "numpy.exceptions": """
        AxisError ComplexWarning DTypePromotionError ModuleDeprecationWarning TooHardError
        VisibleDeprecationWarning
    """,
    "numpy.fft": """
        fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2
        rfftfreq rfftn
    """,
    "numpy.lib": "NumpyVersion",
    "numpy.lib.stride_tricks": "as_strided sliding_window_view",
    "numpy.linalg": """
        cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv LinAlgError lstsq matmul matrix_norm
        matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals
        tensordot tensorinv tensorsolve trace vecdot vector_norm
    """,
    "numpy.ma": """
        abs absolute add all allclose allequal alltrue amax amin angle anom anomalies any append
        apply_along_axis apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
        argmin argsort around array asanyarray asarray atleast_1d atleast_2d atleast_3d average bitwise_and
        bitwise_or bitwise_xor bool_ ceil choose clip clump_masked clump_unmasked column_stack
        common_fill_value compress compress_cols compress_nd compress_rowcols compress_rows compressed
        concatenate conjugate convolve copy corrcoef correlate cos cosh count count_masked cov cumprod cumsum
        default_fill_value diag diagflat diagonal diff divide dot dstack ediff1d empty empty_like equal exp
        expand_dims fabs filled fix_invalid flatnotmasked_contiguous flatnotmasked_edges flatten_mask
        flatten_structured_array floor floor_divide fmod frombuffer fromflex fromfunction getdata getmask
        getmaskarray greater greater_equal harden_mask hsplit hstack hypot identity ids in1d indices inner
        innerproduct intersect1d is_mask is_masked isarray isin isMA isMaskedArray left_shift less less_equal
        log log10 log2 logical_and logical_not logical_or logical_xor MAError make_mask make_mask_descr
        make_mask_none mask_cols mask_or mask_rowcols mask_rows masked masked_all masked_all_like masked_array
        masked_equal masked_greater masked_greater_equal masked_inside masked_invalid masked_less
        masked_less_equal masked_not_equal masked_object masked_outside masked_print_option masked_singleton
        masked_values masked_where MaskedArray MaskError MaskType max maximum maximum_fill_value mean median
        min minimum minimum_fill_value mod mr_ multiply mvoid ndenumerate ndim negative nomask nonzero
        not_equal notmasked_contiguous notmasked_edges ones ones_like outer outerproduct polyfit power prod
        product ptp put putmask ravel remainder repeat reshape resize right_shift round round_ row_stack
        set_fill_value setdiff1d setxor1d shape sin sinh size soften_mask sometrue sort sqrt squeeze stack std
        subtract sum swapaxes take tan tanh trace transpose true_divide union1d unique vander var vstack where
        zeros zeros_like
    """,
    "numpy.polynomial": "Chebyshev Hermite HermiteE Laguerre Legendre Polynomial set_default_printstyle",
    "numpy.strings": """
        add capitalize center count decode encode endswith equal expandtabs find greater greater_equal index
        isalnum isalpha isdecimal isdigit islower isnumeric isspace istitle isupper less less_equal ljust
        lower lstrip mod multiply not_equal partition replace rfind rindex rjust rpartition rstrip slice
        startswith str_len strip swapcase title translate upper zfill
    """,
    "numpy.typing": "ArrayLike DTypeLike NDArray",
    "pandas": """
        array ArrowDtype bdate_range BooleanDtype Categorical CategoricalDtype CategoricalIndex concat
        crosstab cut DataFrame date_range DateOffset DatetimeIndex DatetimeTZDtype factorize Flags
        Float32Dtype Float64Dtype from_dummies get_dummies get_option Grouper Index IndexSlice infer_freq
        Int16Dtype Int32Dtype Int64Dtype Int8Dtype Interval interval_range IntervalDtype IntervalIndex isna
        isnull json_normalize lreshape melt merge merge_asof merge_ordered MultiIndex NA NamedAgg NaT notna
        notnull option_context options Period period_range PeriodDtype PeriodIndex pivot pivot_table qcut
        RangeIndex reset_option Series set_option SparseDtype StringDtype Timedelta timedelta_range
        TimedeltaIndex Timestamp to_datetime to_numeric to_timedelta UInt16Dtype UInt32Dtype UInt64Dtype
        UInt8Dtype unique value_counts wide_to_long
    """,
    "pandas.api.extensions": "ExtensionArray ExtensionDtype no_default take",
    "pandas.api.types": """
        CategoricalDtype DatetimeTZDtype infer_dtype IntervalDtype is_any_real_numeric_dtype is_array_like
        is_bool is_bool_dtype is_categorical_dtype is_complex is_complex_dtype is_datetime64_any_dtype
        is_datetime64_dtype is_datetime64_ns_dtype is_datetime64tz_dtype is_dict_like is_dtype_equal
        is_extension_array_dtype is_file_like is_float is_float_dtype is_hashable is_int64_dtype is_integer
        is_integer_dtype is_interval is_interval_dtype is_iterator is_list_like is_named_tuple is_number
        is_numeric_dtype is_object_dtype is_period_dtype is_re is_re_compilable is_scalar
        is_signed_integer_dtype is_sparse is_string_dtype is_timedelta64_dtype is_timedelta64_ns_dtype
        is_unsigned_integer_dtype pandas_dtype PeriodDtype union_categoricals
    """,
    "pandas.errors": """
        AbstractMethodError AttributeConflictWarning CategoricalConversionWarning ClosedFileError CSSWarning
        DatabaseError DataError DtypeWarning DuplicateLabelError EmptyDataError IncompatibilityWarning
        IndexingError IntCastingNaNError InvalidColumnName InvalidComparison InvalidIndexError InvalidVersion
        LossySetitemError MergeError NoBufferPresent NullFrequencyError NumbaUtilError NumExprClobberingError
        OptionError OutOfBoundsDatetime OutOfBoundsTimedelta ParserError ParserWarning PerformanceWarning
        PossibleDataLossError PossiblePrecisionLoss PyperclipException PyperclipWindowsException
        SettingWithCopyError SettingWithCopyWarning SpecificationError UndefinedVariableError
        UnsortedIndexError UnsupportedFunctionCall ValueLabelTypeMismatch
    """,
    "pandas.tseries.offsets": """
        BaseOffset BDay BMonthBegin BMonthEnd BQuarterBegin BQuarterEnd BusinessDay BusinessHour
        BusinessMonthBegin BusinessMonthEnd BYearBegin BYearEnd CBMonthBegin CBMonthEnd CDay CustomBusinessDay
        CustomBusinessHour CustomBusinessMonthBegin CustomBusinessMonthEnd DateOffset Day Easter FY5253
        FY5253Quarter Hour LastWeekOfMonth Micro Milli Minute MonthBegin MonthEnd Nano QuarterBegin QuarterEnd
        Second SemiMonthBegin SemiMonthEnd Tick Week WeekOfMonth YearBegin YearEnd
    """,
    "pyarrow": """
        arange Array array ArrowCancelled ArrowCapacityError ArrowException ArrowIndexError ArrowInvalid
        ArrowIOError ArrowKeyError ArrowMemoryError ArrowNotImplementedError ArrowSerializationError
        ArrowTypeError binary binary_view BinaryArray BinaryScalar BinaryViewArray BinaryViewScalar bool8
        Bool8Array Bool8Scalar Bool8Type bool_ BooleanArray BooleanScalar chunked_array ChunkedArray
        concat_arrays concat_batches concat_tables DataType date32 Date32Array Date32Scalar date64 Date64Array
        Date64Scalar decimal128 Decimal128Array Decimal128Scalar Decimal128Type decimal256 Decimal256Array
        Decimal256Scalar Decimal256Type decimal32 Decimal32Array Decimal32Scalar Decimal32Type decimal64
        Decimal64Array Decimal64Scalar Decimal64Type dense_union DenseUnionType DeviceAllocationType
        dictionary DictionaryArray DictionaryScalar DictionaryType DoubleArray DoubleScalar duration
        DurationArray DurationScalar DurationType ExtensionArray ExtensionScalar ExtensionType Field field
        fixed_shape_tensor FixedShapeTensorArray FixedShapeTensorScalar FixedShapeTensorType
        FixedSizeBinaryArray FixedSizeBinaryScalar FixedSizeBinaryType FixedSizeListArray FixedSizeListScalar
        FixedSizeListType float16 float32 float64 FloatArray FloatingPointArray FloatScalar from_numpy_dtype
        HalfFloatArray HalfFloatScalar infer_type int16 Int16Array Int16Scalar int32 Int32Array Int32Scalar
        int64 Int64Array Int64Scalar int8 Int8Array Int8Scalar IntegerArray json_ JsonArray JsonScalar
        JsonType KeyValueMetadata large_binary large_list large_list_view large_string large_utf8
        LargeBinaryArray LargeBinaryScalar LargeListArray LargeListScalar LargeListType LargeListViewArray
        LargeListViewScalar LargeListViewType LargeStringArray LargeStringScalar list_ list_view ListArray
        ListScalar ListType ListViewArray ListViewScalar ListViewType map_ MapArray MapScalar MapType
        month_day_nano_interval MonthDayNano MonthDayNanoIntervalArray MonthDayNanoIntervalScalar NA NULL null
        NullArray nulls NullScalar NumericArray opaque OpaqueArray OpaqueScalar OpaqueType record_batch
        RecordBatch repeat run_end_encoded RunEndEncodedArray RunEndEncodedScalar RunEndEncodedType Scalar
        scalar Schema schema sparse_union SparseUnionType string string_view StringArray StringScalar
        StringViewArray StringViewScalar struct StructArray StructScalar StructType Table table Tensor time32
        Time32Array Time32Scalar Time32Type time64 Time64Array Time64Scalar Time64Type timestamp
        TimestampArray TimestampScalar TimestampType type_for_alias uint16 UInt16Array UInt16Scalar uint32
        UInt32Array UInt32Scalar uint64 UInt64Array UInt64Scalar uint8 UInt8Array UInt8Scalar unify_schemas
        union UnionArray UnionScalar UnionType UnknownExtensionType utf8 uuid UuidArray UuidScalar UuidType
    """,
    "pyarrow.compute": """
        abs abs_checked acos acos_checked acosh acosh_checked add add_checked all and and_ and_kleene and_not
        and_not_kleene any approximate_median array_filter array_sort_indices array_take ArraySortOptions
        ascii_capitalize ascii_center ascii_is_alnum ascii_is_alpha ascii_is_decimal ascii_is_lower
        ascii_is_printable ascii_is_space ascii_is_title ascii_is_upper ascii_lower ascii_lpad ascii_ltrim
        ascii_ltrim_whitespace ascii_reverse ascii_rpad ascii_rtrim ascii_rtrim_whitespace
        ascii_split_whitespace ascii_swapcase ascii_title ascii_trim ascii_trim_whitespace ascii_upper asin
        asin_checked asinh assume_timezone AssumeTimezoneOptions atan atan2 atanh atanh_checked binary_join
        binary_join_element_wise binary_length binary_repeat binary_replace_slice binary_reverse binary_slice
        bit_wise_and bit_wise_not bit_wise_or bit_wise_xor bottom_k_unstable case_when cast CastOptions ceil
        ceil_temporal choose coalesce cos cos_checked cosh count count_distinct count_substring
        count_substring_regex CountOptions cumulative_max cumulative_mean cumulative_min cumulative_prod
        cumulative_prod_checked cumulative_sum cumulative_sum_checked CumulativeOptions CumulativeSumOptions
        day day_of_week day_of_year day_time_interval_between DayOfWeekOptions days_between dictionary_decode
        dictionary_encode DictionaryEncodeOptions divide divide_checked drop_null ElementWiseAggregateOptions
        ends_with equal exp expm1 extract_regex extract_regex_span ExtractRegexOptions ExtractRegexSpanOptions
        field fill_null fill_null_backward fill_null_forward filter FilterOptions find_substring
        find_substring_regex first first_last floor floor_temporal FunctionOptions greater greater_equal hour
        hours_between hypot if_else index index_in index_in_meta_binary IndexOptions indices_nonzero
        inverse_permutation InversePermutationOptions invert is_dst is_finite is_in is_in_meta_binary is_inf
        is_leap_year is_nan is_null is_valid iso_calendar iso_week iso_year JoinOptions kurtosis last less
        less_equal list_element list_flatten list_parent_indices list_slice list_value_length
        ListFlattenOptions ListSliceOptions ln ln_checked local_timestamp log10 log10_checked log1p
        log1p_checked log2 log2_checked logb logb_checked make_struct MakeStructOptions map_lookup
        MapLookupOptions match_like match_substring match_substring_regex MatchSubstringOptions max
        max_element_wise mean microsecond microseconds_between millisecond milliseconds_between min
        min_element_wise min_max minute minutes_between mode ModeOptions modulo modulo_checked month
        month_day_nano_interval_between month_interval_between multiply multiply_checked nanosecond
        nanoseconds_between negate negate_checked not_equal NullOptions or or_ or_kleene PadOptions
        pairwise_diff pairwise_diff_checked PairwiseOptions partition_nth_indices PartitionNthOptions
        pivot_wider PivotWiderOptions power power_checked product quantile QuantileOptions quarter
        quarters_between rank rank_normal rank_quantile RankOptions RankQuantileOptions remainder
        remainder_checked replace_substring replace_substring_regex replace_with_mask ReplaceSliceOptions
        ReplaceSubstringOptions round round_binary round_temporal round_to_multiple RoundBinaryOptions
        RoundOptions RoundTemporalOptions RoundToMultipleOptions run_end_decode run_end_encode
        RunEndEncodeOptions scalar ScalarAggregateOptions scatter ScatterOptions search_sorted
        SearchSortedOptions second seconds_between select_k_unstable SelectKOptions SetLookupOptions
        shift_left shift_left_checked shift_right shift_right_checked sign sin sin_checked sinh skew
        SkewOptions SliceOptions sort_indices SortOptions split_pattern split_pattern_regex SplitOptions
        SplitPatternOptions sqrt sqrt_checked starts_with stddev strftime StrftimeOptions string_is_ascii
        strptime StrptimeOptions struct_field StructFieldOptions subsecond subtract subtract_checked sum take
        TakeOptions tan tan_checked tanh tdigest TDigestOptions top_k_unstable TrimOptions true_unless_null
        trunc unique us_week us_year utf8_capitalize utf8_center utf8_is_alnum utf8_is_alpha utf8_is_decimal
        utf8_is_digit utf8_is_lower utf8_is_numeric utf8_is_printable utf8_is_space utf8_is_title
        utf8_is_upper utf8_length utf8_lower utf8_lpad utf8_ltrim utf8_ltrim_whitespace utf8_normalize
        utf8_replace_slice utf8_reverse utf8_rpad utf8_rtrim utf8_rtrim_whitespace utf8_slice_codeunits
        utf8_split_whitespace utf8_swapcase utf8_title utf8_trim utf8_trim_whitespace utf8_upper
        utf8_zero_fill utf8_zfill Utf8NormalizeOptions value_counts variance VarianceOptions week WeekOptions
        weeks_between winsorize WinsorizeOptions xor year year_month_day years_between ZeroFillOptions
    """,
    "pyarrow.types": """
        is_binary is_binary_view is_boolean is_boolean_value is_date is_date32 is_date64 is_decimal
        is_decimal128 is_decimal256 is_decimal32 is_decimal64 is_dictionary is_duration is_fixed_size_binary
        is_fixed_size_list is_float16 is_float32 is_float64 is_float_value is_floating is_int16 is_int32
        is_int64 is_int8 is_integer is_integer_value is_interval is_large_binary is_large_list
        is_large_list_view is_large_string is_large_unicode is_list is_list_view is_map is_nested is_null
        is_primitive is_run_end_encoded is_signed_integer is_string is_string_view is_struct is_temporal
        is_time is_time32 is_time64 is_timestamp is_uint16 is_uint32 is_uint64 is_uint8 is_unicode is_union
        is_unsigned_integer
    """,
    "pytz": "AmbiguousTimeError FixedOffset NonExistentTimeError timezone UnknownTimeZoneError UTC utc",
    "typing_extensions": """
        AbstractSet Annotated Any AnyStr assert_never assert_type AsyncContextManager AsyncGenerator
        AsyncIterable AsyncIterator Awaitable BinaryIO Buffer Callable CapsuleType cast ChainMap ClassVar
        clear_overloads Collection Concatenate Container ContextManager Coroutine Counter dataclass_transform
        DefaultDict Deque Dict disjoint_base Doc Final final Format ForwardRef FrozenSet Generator Generic
        get_annotations get_args get_origin get_original_bases get_overloads get_protocol_members Hashable
        IntVar IO is_protocol is_typeddict ItemsView Iterable Iterator KeysView List Literal LiteralString
        Mapping MappingView Match MutableMapping MutableSequence MutableSet NamedTuple Never NewType
        no_type_check no_type_check_decorator NoDefault NoExtraItems NoReturn NotRequired Optional OrderedDict
        overload override ParamSpec ParamSpecArgs ParamSpecKwargs Pattern Protocol Reader ReadOnly Required
        Reversible runtime runtime_checkable Self Sentinel sentinel Sequence Set Sized SupportsAbs
        SupportsBytes SupportsComplex SupportsFloat SupportsIndex SupportsInt SupportsRound Text TextIO Tuple
        Type TYPE_CHECKING type_repr TypeAlias TypeAliasType TypedDict TypeForm TypeGuard TypeIs TypeVar
        TypeVarTuple Union Unpack ValuesView Writer
    """,
}
