"""Lists by name the methods and attributes that are known to be pure whatever value they are called on.

Reading code does not tell the type of a value. But it tells where values come from: pure code makes them from Spark's
rows with what is known to be pure, so they have one of the types below (or one of the user's). On these a name in
`METHODS` only computes. The tables are complete: what these types have is either here or in `IMPURE`, which a test
checks. Each name is listed once, with the first type that has it, in alphabetical order.
"""

from __future__ import annotations

METHODS = {
    # strings, bytes, numbers, containers, exceptions, generators
    "builtin": """
        add add_note append args as_integer_ratio bit_count bit_length c_contiguous capitalize casefold cast
        center characters_written clear close conjugate contiguous copy count decode deleter denominator
        difference difference_update discard encode encoding end end_lineno end_offset endswith errno
        expandtabs extend f_contiguous fdel fget filename filename2 find format format_map from_bytes fromhex
        fromkeys fset get getter gi_code gi_running gi_suspended gi_yieldfrom hex imag index indices insert
        intersection intersection_update is_integer isalnum isalpha isascii isdecimal isdigit isdisjoint
        isidentifier islower isnumeric isprintable isspace issubset issuperset istitle isupper items itemsize
        join keys lineno ljust lower lstrip maketrans mro msg name nbytes ndim numerator obj object offset
        partition path pop popitem print_file_and_line readonly real reason release remove removeprefix
        removesuffix replace reverse rfind rindex rjust rpartition rsplit rstrip send setdefault setter shape
        sort split splitlines start startswith step stop strerror strides strip suboffsets swapcase
        symmetric_difference symmetric_difference_update text throw title to_bytes tobytes tolist toreadonly
        translate union update upper value values with_traceback zfill
    """,
    # dates, decimals, matches, collections, hashes, buffers, XML elements, loggers, ...
    "standard": """
        _asdict _field_defaults _fields _generate_next_value_ _make _member_map_ _member_names_ _missing_
        _name_ _replace _value_ abs addFilter address_exclude adjusted appendleft as_tuple astimezone attrib
        batched block_size braceidpattern broadcast_address buffer_info bytes bytes_le byteswap cache_clear
        cache_info cache_parameters callback canonical capitals CDATA_CONTENT_ELEMENTS cdf chain
        check_for_whole_start_tag check_unused_args clamp clear_cache clear_cdata_mode clear_flags clear_traps
        clock_seq clock_seq_hi_variant clock_seq_low closed combine comment compare compare_networks
        compare_signal compare_total compare_total_mag compress compressed convert_field copy_abs copy_decimal
        copy_negate copy_sign create_decimal create_decimal_from_float critical ctime data date day days debug
        decompress default default_factory delimiter detach dialect digest digest_size dispatch divide
        divide_int divmod done dst elements Emax Emin endpos enter_context entity eof error errors Etiny Etop
        exception exp expand exploded extendleft extrasaction fatal feed fieldnames fields fill filter
        find_longest_match findall finditer findtext firstweekday flags flush fma fold format_field
        format_help formatday formatmonth formatmonthname formatweek formatweekday formatweekheader formatyear
        fragment from_decimal from_file from_float from_iterable from_number from_samples frombytes
        fromisocalendar fromisoformat fromlist fromordinal fromtimestamp fromunicode fromutc full_match
        fullmatch func generic_visit get_field get_grouped_opcodes get_identifiers get_matching_blocks
        get_opcodes get_ready get_starttag_text get_value getbuffer getChild getEffectiveLevel getfirstweekday
        getitem getLogger getpos geturl getvalue goahead group groupdict groupindex groups handle
        handle_charref handle_comment handle_data handle_decl handle_endtag handle_entityref handle_pi
        handle_startendtag handle_starttag has_header hasHandlers hexdigest hostmask hostname hosts hour hours
        idpattern info int inv_cdf ip ipv4_mapped is_active is_canonical is_finite is_global is_infinite
        is_link_local is_loopback is_multicast is_nan is_normal is_private is_qnan is_reserved is_safe
        is_signed is_site_local is_snan is_subnormal is_unspecified is_valid is_valid_utf8 is_zero isatty
        isEnabledFor isjunction isocalendar isoformat isoweekday item_separator iter iter_unpack iterencode
        iterfind itermonthdates itermonthdays itermonthdays2 itermonthdays3 itermonthdays4 itertext
        iterweekdays key key_separator keywords lastgroup lastindex leapdays limit_denominator line_buffering
        line_num ln localize log log10 logb logical_and logical_invert logical_or logical_xor makeelement
        match max MAX_DIGEST_SIZE MAX_KEY_SIZE max_mag max_prefixlen maxlen mean median microsecond
        microseconds min min_mag minus minute mode month monthdatescalendar monthdays2calendar
        monthdayscalendar months most_common move_to_end multiply netloc new_child newlines next_minus
        next_plus next_toward no_cache node normalize num_addresses number_class overlap overlaps pack
        pack_into packed params parents parse parse_bogus_comment parse_comment parse_declaration parse_endtag
        parse_html_declaration parse_marked_section parse_pi parse_starttag password pattern pdf PERSON_SIZE
        pi plus pop_all popleft port pos power prec prefixlen prepare prmonth prweek pryear push quantiles
        quantize query quick_ratio radix ratio raw_decode re read read1 readable reader readinto readinto1
        readline readlines real_quick_ratio register regs relativedelta remainder remainder_near removeFilter
        reset resolution restkey restval reverse_pointer root rotate rounding safe_substitute SALT_SIZE
        same_quantum scaleb scanner scheme scope_id search second seconds seek seekable sentence_end_re
        serialize set set_cdata_mode set_seq1 set_seq2 set_seqs setfirstweekday setLevel shift sixtofour size
        sniff span sqrt static_order stdev strftime string strptime Struct sub subn subnet_of subnets
        substitute subtract supernet supernet_of tag tail target tell teredo time time_hi_version time_low
        time_mid timestamp timetuple timetz to_eng_string to_integral to_integral_exact to_integral_value
        to_sci_string toordinal total total_seconds tounicode truncate typecode tzinfo tzname unconsumed_tail
        unicode_whitespace_trans unknown_decl unpack unpack_from unused_data updatepos urn username utc
        utcfromtimestamp utcoffset utctimetuple variance variant version vformat visit visit_Constant warn
        warning weekday weeks with_hostmask with_netmask with_prefixlen with_segments wordsep_re
        wordsep_simple_re wrap writable write writeheader writelines writer writerow writerows year
        yeardatescalendar yeardays2calendar yeardayscalendar years zone zscore
    """,
    # arrays, scalars, ufuncs, polynomials
    "numpy": """
        A A1 accumulate alignment all anom any argmax argmin argpartition argsort astype at base baseclass
        basis basis_name bitwise_count byteorder c char choose clip coef coefficients coeffs conj convert
        coords cumprod cumsum cutdeg degree deriv descr device diagonal domain dot dtype dtypes dumps
        enable_external_loop epsneg field fill_value filled finished fit flat flatten fromroots get_fill_value
        get_imag get_real getA getA1 getfield getH getI getT H harden_mask hardmask has_delayed_bufalloc
        has_index has_multi_index has_samecoef has_samedomain has_sametype has_samewindow hasobject holidays I
        identity ids iexp integ isalignedstruct isbuiltin iscontiguous isnative item iterationneedsapi
        iterindex iternext iterrange iters itersize itviews kind linspace machep mapparms mask maxpower
        metadata mT multi_index names nargs nd negep newbyteorder nexp nin nonzero nop nout ntypes num numiter
        o operands order outer prod product ptp put r ravel recordmask reduce reduceat remove_axis
        remove_multi_index repeat reshape resize resolve_dtypes roots round searchsorted set_fill_value
        setfield setflags sharedmask shrink_mask signature soften_mask squeeze std str subdtype sum swapaxes
        symbol T take tiny to_device toflex torecords trace transpose trim type types unshare_mask var
        variable view weekmask window
    """,
    # Series, DataFrame, Index, GroupBy, windows, the accessors str, dt and cat, scalars, offsets
    "pandas": """
        a add_categories add_prefix add_suffix adjust agg aggfunc aggregate align alpha apply applymap array
        as_ordered as_unit as_unordered asfreq asi8 asm8 asof asof_locs assign at_time attrs autocorr ax axes
        axis backfill between between_time bfill binner bool calendar case_when cat categories ceil
        check_for_ordered closed_left closed_right codes column columns com combine_first components
        construct_array_type construct_from_string contains convert_dtypes corr corrwith cov cumcount cummax
        cummin day_name day_of_week day_of_year dayofweek dayofyear days_in_month daysinmonth delete describe
        describe_option diff div drop drop_duplicates droplevel dropna dt duplicated empty end_time eq
        equal_levels equals ewm exclusions expanding explode extract extractall factorize ffill fillna first
        first_valid_index floor floordiv freq freqstr from_arrays from_breaks from_codes from_dict from_fields
        from_frame from_ordinals from_product from_range from_records from_tuples ge get_dummies get_group
        get_indexer get_indexer_for get_indexer_non_unique get_level_values get_loc get_loc_level get_locs
        get_slice_bound groupby grouper gt halflife has_duplicates hasnans head holds_integer iat identical
        idxmax idxmin ignore_na iloc include_groups index_class indexer indexer_at_time indexer_between_time
        infer_objects inferred_freq inferred_type interpolate is_ is_all_dates is_anchored is_boolean
        is_categorical is_copy is_dtype is_empty is_floating is_full is_interval is_leap_year
        is_monotonic_decreasing is_monotonic_increasing is_month_end is_month_start
        is_non_overlapping_monotonic is_normalized is_numeric is_object is_on_offset is_overlapping
        is_quarter_end is_quarter_start is_unique is_year_end is_year_start isetitem isin isna isnull
        iteritems iterrows itertuples kurt kurtosis kwds last last_valid_index le left len length levels
        levshape list loc lookup lt mad map melt memory_usage merge method mid millisecond min_periods mod
        month_name mul n na_value nanos nanosecond nanoseconds ne nearest ngroup ngroups nlargest nlevels
        notna notnull nsmallest nth nunique ohlc on open_left open_right ordered ordinal pad pct_change pipe
        pivot pivot_table pow putmask quantile quarter qyear radd rank rdiv rdivmod reindex reindex_like
        remove_categories remove_unused_categories remove_unused_levels rename rename_axis rename_categories
        reorder_categories reorder_levels resample reset_cache reset_index resolution_string rfloordiv right
        rmod rmul rollback rollforward rolling rpow rsub rtruediv rule_code s select_dtypes sem set_axis
        set_categories set_closed set_codes set_flags set_index set_levels set_names set_ordered skew slice
        slice_indexer slice_locs slice_replace slice_shift snap sort_index sort_values sortlevel sparse stack
        start_time struct swaplevel t times to_datetime64 to_dict to_flat_index to_frame to_julian_date
        to_list to_native_types to_numpy to_period to_pydatetime to_pytimedelta to_records to_series
        to_timedelta64 to_timestamp to_tuples transform truediv tshift tz tz_convert tz_localize unique unit
        unstack update_dtype validate_categories validate_ordered value_counts week weekofyear where win_type
        xs
    """,
    # arrays, tables, scalars, schemas, types
    "pyarrow": """
        add_column add_metadata append_column as_buffer as_py bit_width buffers byte_width child chunk chunks
        column_names combine_chunks copy_to device_type dictionary dictionary_decode dictionary_encode
        drop_columns drop_null empty_table field_by_name field_name fill_null find_physical_length
        find_physical_offset from_batches from_buffers from_dense from_dlpack from_pandas from_pydict
        from_pylist from_sparse from_struct_array get_all_field_indices get_field_index get_total_buffer_size
        group_by has_variadic_buffers id is_cpu is_mutable is_null iterchunks itercolumns join_asof null_count
        nullable num_buffers num_chunks num_columns num_fields num_rows offsets pandas_metadata parent
        remove_column remove_metadata rename_columns replace_schema_metadata run_ends schema select set_column
        sort_by statistics to_batches to_pandas to_pandas_dtype to_pybytes to_pydict to_pylist to_reader
        to_struct_array to_tensor type_codes unify_dictionaries validate value_field value_lengths
        value_parent_indices value_type with_metadata with_name with_nullable with_type
    """,
    # rows, types, vectors, what merges values of a shuffle
    "spark": """
        asDict createCombiner dataType dense elementType fieldNames flattened_serializer fromInternal json
        jsonValue keyType MAX_TOTAL_PARTITIONS mergeCombiners mergeStats mergeValue mergeValues needConversion
        norm numActives numNonzeros sampleStdev sampleVariance simpleString SORT_KEY_LIMIT sorted
        squared_distance toArray toDense toInternal toSparse typeName valueType zeros
    """,
    # paths, as far as they are text
    "path": """
        anchor as_posix as_uri drive is_absolute is_relative_to joinpath parts relative_to stem suffix
        suffixes with_stem with_suffix
    """,
}

IMPURE = {
    # lead to the callers' frames and all that they see
    "builtin": "ag_frame cr_frame f_back f_builtins f_globals f_locals gi_frame tb_frame tb_next",
    # clocks, chance, files, and ways to a logger's handlers
    "standard": """
        addHandler callHandlers fileno findCaller fromfile handlers makeRecord manager now removeHandler
        samples today tofile utcnow
    """,
    # files, addresses, output
    "numpy": "ctypes debug_print dump tofile",
    # chance, files, text that is run as code, pictures, the choice of other engines
    "pandas": """
        boxplot eval hist online plot sample style to_clipboard to_csv to_excel to_feather to_gbq to_hdf
        to_html to_json to_latex to_markdown to_orc to_parquet to_pickle to_sql to_stata to_string to_xarray
        to_xml
    """,
    # addresses
    "pyarrow": "address memory_manager",
}

PATHS = """
    absolute chmod copy copy_into cwd delete exists expanduser from_uri glob group hardlink_to home
    is_block_device is_char_device is_dir is_fifo is_file is_junction is_mount is_socket is_symlink iterdir
    lchmod link_to lstat mkdir move move_into open owner read_bytes read_text readlink rename replace resolve
    rglob rmdir samefile stat symlink_to touch unlink walk write_bytes write_text
"""
"""What a ``pathlib.Path`` does to the file system: impure in code that names that class. In other code no value is a
path, and ``replace`` is the method of text.
"""

SPECIAL = """
    __abs__ __add__ __aenter__ __aexit__ __aiter__ __and__ __anext__ __annotations__ __args__ __array__
    __array_ufunc__ __await__ __bool__ __bytes__ __call__ __cause__ __ceil__ __class__ __class_getitem__
    __classcell__ __complex__ __contains__ __context__ __copy__ __dataclass_fields__ __deepcopy__ __delattr__
    __delete__ __delitem__ __divmod__ __doc__ __enter__ __eq__ __exit__ __float__ __floor__ __floordiv__
    __format__ __fspath__ __ge__ __get__ __getitem__ __getnewargs__ __gt__ __hash__ __iadd__ __index__
    __init__ __init_subclass__ __instancecheck__ __int__ __invert__ __isub__ __iter__ __le__ __len__
    __length_hint__ __lshift__ __lt__ __match_args__ __members__ __missing__ __mod__ __module__ __mul__
    __name__ __ne__ __neg__ __new__ __next__ __or__ __origin__ __pos__ __post_init__ __pow__ __prepare__
    __qualname__ __radd__ __rand__ __repr__ __reversed__ __rmul__ __ror__ __round__ __rshift__ __rsub__
    __rtruediv__ __set__ __set_name__ __setattr__ __setitem__ __slots__ __str__ __sub__ __subclasscheck__
    __subclasshook__ __suppress_context__ __traceback__ __truediv__ __trunc__ __version__ __wrapped__ __xor__
"""
"""Special names that lead nowhere else. Others do: ``__globals__``, ``__subclasses__``, ``__dict__``, ``__self__``."""
