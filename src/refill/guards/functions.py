"""Spark SQL functions that a transform may call: pure, of their arguments alone.

Left out on purpose: whatever reaches outside of the row (reflect, java_method, input_file_name,
read_files, from_avro, xpath with external entities, sql session and catalogue functions).
"""

_CONDITIONS = (
    "coalesce if ifnull nullif nullifzero zeroifnull nvl nvl2 isnull isnotnull isnan nanvl"
)
_STRINGS = """ascii base64 bit_length btrim char char_length character_length chr concat concat_ws
contains decode elt encode endswith find_in_set format_number format_string hex initcap instr lcase
left len length levenshtein locate lower lpad ltrim luhn_check mask octet_length overlay position
printf regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace
regexp_substr repeat replace reverse right rpad rtrim sentences soundex space split split_part
startswith substr substring substring_index to_binary to_char to_number to_varchar translate trim
try_to_binary try_to_number ucase unbase64 unhex upper url_decode url_encode parse_url try_parse_url
is_valid_utf8 make_valid_utf8 validate_utf8 quote collate"""
_NUMBERS = """abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil
ceiling conv cos cosh cot csc degrees div e exp expm1 factorial floor getbit greatest hypot least ln
log log10 log1p log2 mod negative pi pmod positive pow power radians rint round sec shiftleft
shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_mod
try_multiply try_subtract width_bucket"""
_DATES = """add_months convert_timezone current_date current_timestamp date date_add date_diff
date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname
dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day make_date
make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval
minute month monthname months_between next_day now quarter second timestamp timestamp_micros
timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_timestamp to_timestamp_ltz
to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_timestamp try_to_date
try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear
window year"""
_CASTS = """bigint binary boolean cast decimal double float int smallint string tinyint try_cast
typeof"""
_HASHES = "crc32 hash md5 sha sha1 sha2 xxhash64 bitmap_bit_position bitmap_bucket_number"
_JSON = """from_json get_json_object json_array_length json_object_keys json_tuple schema_of_json
to_json parse_json try_parse_json variant_get try_variant_get is_variant_null from_csv to_csv"""
_COLLECTIONS = """aggregate array array_append array_compact array_contains array_distinct
array_except array_insert array_intersect array_join array_max array_min array_position
array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip
cardinality element_at exists filter flatten forall get map map_concat map_contains_key map_entries
map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with named_struct reduce
sequence size slice sort_array str_to_map struct transform transform_keys transform_values
try_element_at zip_with"""
_ROW_MAKERS = "explode explode_outer posexplode posexplode_outer inline inline_outer stack"
_AGGREGATES = """any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or
bit_xor bool_and bool_or collect_list collect_set corr count count_if covar_pop covar_samp every
first first_value grouping grouping_id histogram_numeric kurtosis last last_value listagg max max_by
mean median min min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx
regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std
stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance"""
_WINDOWS = "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number"

GROUPS = {
    name: tuple(words.split())
    for name, words in {
        "conditions": _CONDITIONS,
        "texts": _STRINGS,
        "numbers": _NUMBERS,
        "dates and times": _DATES,
        "casts": _CASTS,
        "hashes": _HASHES,
        "JSON and CSV": _JSON,
        "arrays, maps, structs": _COLLECTIONS,
        "making rows (transfers only)": _ROW_MAKERS,
        "aggregates (transfers only)": _AGGREGATES,
        "windows (transfers only)": _WINDOWS,
    }.items()
}
FUNCTIONS = frozenset(name for names in GROUPS.values() for name in names)

# words that stand before a parenthesis without being a function
TYPES_AND_KEYWORDS = frozenset(
    [
        "select",
        "from",
        "where",
        "and",
        "or",
        "not",
        "in",
        "as",
        "on",
        "using",
        "over",
        "by",
        "when",
        "then",
        "else",
        "case",
        "between",
        "like",
        "rlike",
        "ilike",
        "is",
        "distinct",
        "having",
        "order",
        "group",
        "partition",
        "values",
        "filter",
        "exists",
        "all",
        "union",
        "intersect",
        "except",
        "join",
        "with",
        "decimal",
        "dec",
        "numeric",
        "varchar",
        "char",
        "array",
        "map",
        "struct",
        "interval",
        "within",
        "except",
    ]
)
