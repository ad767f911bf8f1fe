package flinkmagic.planning;

import java.util.Arrays;
import java.util.HashSet;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.RowFrame$;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.Tuple2;
import scala.collection.JavaConverters;

/**
 * Which expressions are total: they have a value for every input, so that nobody notices that they were computed.
 *
 * What is not named here is partial: it may raise, hang or have effects. Spark's own `Expression.throwable` is no help,
 * as `Divide` and `Cast` do not override it. Only Spark's own classes count: others may have the same names. Seen on
 * 3.5.9 and 4.3.0, whose expressions say by `evalMode` or `failOnError` whether they raise.
 *
 * Times count as being of the years -290307 to 294246: Spark raises at the ends of what a timestamp can hold.
 */
public class TotalExpressions {
    private static final HashSet<String> TOTAL = names(
        // columns, constants, conditions
        "Alias And AtLeastNNonNulls AttributeReference CaseWhen Coalesce EqualNullSafe EqualTo GreaterThan"
        + " GreaterThanOrEqual Greatest If In InSet IsNaN IsNotNull IsNull KnownFloatingPointNormalized KnownNotNull"
        + " KnownNullable LambdaFunction Least LessThan LessThanOrEqual Literal NaNvl NamedLambdaVariable"
        + " NormalizeNaNAndZero Not Or SortOrder"
        // text
        + " Ascii BitLength Concat ConcatWs Contains EndsWith GetJsonObject Hex InitCap JsonTuple Length Lower OctetLength"
        + " Reverse SoundEx StartsWith StringInstr StringLocate StringReplace StringTranslate StringTrim StringTrimLeft"
        + " StringTrimRight Substring SubstringIndex Upper"
        // dates, if they are dates already
        + " DateAdd DateDiff DateFromUnixDate DateSub DayName DayOfMonth DayOfWeek DayOfYear Hour LastDay MicrosToTimestamp"
        + " Minute Month MonthName MonthsBetween PreciseTimestampConversion Quarter Second SecondWithFraction TruncDate"
        + " TruncTimestamp UnixDate UnixMicros UnixMillis UnixSeconds WeekDay WeekOfYear Year YearOfWeek"
        // doubles, bits
        + " Atan Atan2 BitwiseAnd BitwiseCount BitwiseNot BitwiseOr BitwiseXor Cbrt Cos Cosh Exp Expm1 Hypot Log"
        + " Log10 Log1p Log2 Logarithm Pow Rint ShiftLeft ShiftRight ShiftRightUnsigned Signum Sin Sinh Sqrt Tan Tanh"
        + " ToDegrees ToRadians"
        // hashes, chance, where a row is
        + " BloomFilterMightContain Crc32 InputFileName Md5 MonotonicallyIncreasingID Murmur3Hash Rand Randn Sha1 Sha2"
        + " SparkPartitionID Uuid XxHash64"
        // structures
        + " ArrayContains ArrayDistinct ArrayExcept ArrayExists ArrayFilter ArrayForAll ArrayIntersect ArrayMax ArrayMin"
        + " ArrayPosition ArrayRemove ArrayTransform ArrayUnion ArraysOverlap ArraysZip CreateArray CreateNamedStruct"
        + " Explode GetArrayStructFields GetMapValue GetStructField Inline MapEntries MapFilter MapKeys MapValues PosExplode"
        + " Size SortArray Stack TransformValues ZipWith"
        // aggregates and windows
        + " AggregateExpression ApproximatePercentile BitAndAgg BitOrAgg BitXorAgg BloomFilterAggregate Corr Count"
        + " CovPopulation CovSample CumeDist CurrentRow$ DenseRank First HyperLogLogPlusPlus Kurtosis Lag Last Lead Max"
        + " MaxBy Min MinBy NTile NthValue PercentRank Rank RowNumber Skewness StddevPop StddevSamp UnboundedFollowing$"
        + " UnboundedPreceding$ VariancePop VarianceSamp WindowExpression WindowSpecDefinition");

    /** Total on doubles and floats, on decimals with room for the result, and on whole numbers that are small enough. */
    private static final HashSet<String> OVERFLOWING = names("Abs Add BRound Multiply Round Subtract UnaryMinus");

    /** Total unless they raise on a divisor of zero, whatever the type; or if it is a constant that is not. */
    private static final HashSet<String> DIVIDING = names("Divide IntegralDivide Pmod Remainder");

    /** Total on decimals and whole numbers; the results for doubles may not fit. */
    private static final HashSet<String> WHOLE = names("Ceil Floor");

    /** Total unless they raise on an index that is missing; keys may be missing. */
    private static final HashSet<String> INDEXING = names("ElementAt GetArrayItem");

    /** Total if the pattern is a constant that can be compiled, and matches in steps that do not multiply. */
    private static final HashSet<String> MATCHING = names("Like RLike RegExpExtract RegExpExtractAll RegExpReplace StringSplit");

    /** Total if what they are given is a time: a text is parsed. */
    private static final HashSet<String> TELLING = names("ToUnixTimestamp UnixTimestamp");

    /** Total if the format is a constant of known letters. */
    private static final HashSet<String> FORMATTING = names("DateFormatClass FromUnixTime");

    private static final HashSet<String> PADDING = names("StringLPad StringRPad");
    private static final int WIDEST = 10000;

    /** Whole numbers that are surely small. */
    private static final HashSet<String> SMALL = names(
        "DayOfMonth DayOfWeek DayOfYear Hour Minute Month Quarter Second WeekDay WeekOfYear");
    private static final HashSet<String> YEARS = names("Year YearOfWeek");
    private static final HashSet<String> CHOOSING = names("CaseWhen Coalesce Greatest If Least");

    /** Repeated groups may take exponential time, or more stack than there is. */
    private static final Pattern REPEATED_GROUP = Pattern.compile("\\)[*+{]");
    private static final HashSet<String> FORMAT_LETTERS = names(
        "yyyy yy y MMMM MMM MM M dd d EEEE EEE E HH H hh h mm m ss s S SS SSS SSSSSS a");

    private static HashSet<String> names(String text) {
        return new HashSet<String>(Arrays.asList(text.split(" ")));
    }

    /** Whether an expression is total, whatever is inside it. */
    public static boolean isTotal(Expression expression) throws Exception {
        String name = nameOf(expression);
        if (TOTAL.contains(name)) {
            return true;
        }
        if (expression instanceof Cast) {
            return !raises(expression) || alwaysCasts(((Cast) expression).child(), expression.dataType());
        }
        if (expression instanceof Average) {  // of whole numbers: Spark adds them up as doubles
            DataType type = child(expression, 0).dataType();
            return type instanceof NumericType && !(type instanceof DecimalType) || !raises(expression);
        }
        if (expression instanceof Sum) {
            return isFloating(expression) || !raises(expression);
        }
        if (OVERFLOWING.contains(name)) {
            return isFloating(expression) || !raises(expression) || fits(expression, name);
        }
        if (DIVIDING.contains(name)) {
            return !raises(expression) || hasGoodDivisor(expression, name);
        }
        if (WHOLE.contains(name)) {
            return !isFloating(child(expression, 0).dataType()) || !raises(expression);
        }
        if (INDEXING.contains(name)) {
            return child(expression, 0).dataType() instanceof MapType
                || !raises(expression) && (name.equals("GetArrayItem") || isOtherThanZero(child(expression, 1)));
        }
        if (TELLING.contains(name)) {
            return isTime(child(expression, 0).dataType());
        }
        if (FORMATTING.contains(name)) {
            return hasGoodFormat(child(expression, 1));
        }
        if (PADDING.contains(name)) {
            Object width = valueOf(child(expression, 1));
            return width instanceof Integer && ((Integer) width).intValue() <= WIDEST;
        }
        if (expression instanceof SpecifiedWindowFrame) {  // a range adds its bounds to the rows' values
            SpecifiedWindowFrame frame = (SpecifiedWindowFrame) expression;
            return frame.frameType() == RowFrame$.MODULE$
                || !(frame.lower() instanceof Literal) && !(frame.upper() instanceof Literal);
        }
        if (expression instanceof JsonToStructs) {
            return isLenient(((JsonToStructs) expression).options()) && isPlain(((JsonToStructs) expression).schema());
        }
        return MATCHING.contains(name) && hasGoodPattern(expression, name);
    }

    /** The name of a class of Spark's own; of any other one, a name that is not known here. */
    public static String nameOf(Object one) {
        String name = one.getClass().getName();
        return name.startsWith("org.apache.spark.sql.") ? one.getClass().getSimpleName() : name;
    }

    private static Expression child(Expression expression, int index) {
        return (Expression) expression.children().apply(index);
    }

    private static Object valueOf(Expression expression) {
        return expression instanceof Literal ? ((Literal) expression).value() : null;
    }

    /** `ElementAt` counts from 1, and raises on the index 0 whatever its mode. */
    private static boolean isOtherThanZero(Expression index) {
        return valueOf(index) instanceof Integer && ((Integer) valueOf(index)).intValue() != 0;
    }

    private static boolean isFloating(Expression expression) {
        for (Expression child : JavaConverters.asJavaIterable(expression.children())) {
            if (!(child instanceof Literal) && !isFloating(child.dataType())) {
                return false;
            }
        }
        return true;
    }

    private static boolean isFloating(DataType type) {
        return type instanceof DoubleType || type instanceof FloatType;
    }

    private static boolean isTime(DataType type) {
        return type instanceof DateType || type instanceof TimestampType || type instanceof TimestampNTZType;
    }

    // -- numbers --------------------------------------------------------------------------------------

    /** Whether a result has room in its type. */
    private static boolean fits(Expression expression, String name) {
        DataType type = expression.dataType();
        if (type instanceof DecimalType) {  // its type has room for all results, unless that would need 38 digits
            boolean isSign = name.equals("Abs") || name.equals("UnaryMinus");  // these round to 34 digits
            boolean isRounded = name.equals("Round") || name.equals("BRound");
            return ((DecimalType) type).precision() <= (isSign ? 34 : 37) && (!isRounded || scaleOf(expression) >= 0);
        }
        return type instanceof IntegralType && unlimited(expression) < limitOf(type);
    }

    private static int scaleOf(Expression rounding) {
        Object scale = valueOf(child(rounding, 1));
        return scale instanceof Integer ? ((Integer) scale).intValue() : -1;
    }

    /** More than the largest whole number of a type, positive or negative. */
    private static double limitOf(DataType type) {
        if (type instanceof BooleanType) {
            return 0;
        }
        return type instanceof ByteType ? 128.0 : type instanceof ShortType ? 32768.0
            : type instanceof IntegerType ? 2147483648.0 : type instanceof LongType ? 9.2e18 : Double.POSITIVE_INFINITY;
    }

    /** What the absolute value of a whole number does not exceed. */
    private static double most(Expression expression) {
        return Math.min(unlimited(expression), limitOf(expression.dataType()));
    }

    /** The same, if its type had no limits. */
    private static double unlimited(Expression expression) {
        String name = nameOf(expression);
        if (valueOf(expression) instanceof Number) {
            return Math.abs(((Number) valueOf(expression)).doubleValue());
        }
        if (SMALL.contains(name) || YEARS.contains(name)) {
            return SMALL.contains(name) ? 366 : 6e6;
        }
        if (name.equals("Add") || name.equals("Subtract")) {
            return most(child(expression, 0)) + most(child(expression, 1));
        }
        if (name.equals("Multiply")) {
            return most(child(expression, 0)) * most(child(expression, 1));
        }
        if (name.equals("Remainder") || name.equals("Pmod")) {
            return most(child(expression, 1));
        }
        if (name.equals("Abs") || name.equals("UnaryMinus") || name.equals("IntegralDivide")
            || expression instanceof Cast && child(expression, 0).dataType() instanceof IntegralType) {
            return most(child(expression, 0));
        }
        if (CHOOSING.contains(name)) {
            double most = 0;
            for (Expression child : JavaConverters.asJavaIterable(expression.children())) {
                most = Math.max(most, most(child));
            }
            return most;
        }
        return limitOf(expression.dataType());
    }

    /** The least whole number divided by -1 overflows; no remainder does. */
    private static boolean hasGoodDivisor(Expression expression, String name) {
        Object value = valueOf(child(expression, 1));
        double divisor = value instanceof Decimal ? ((Decimal) value).toDouble()
            : value instanceof Number ? ((Number) value).doubleValue() : 0;
        DataType type = expression.dataType();
        if (divisor == 0 || type instanceof DecimalType && ((DecimalType) type).precision() >= 38) {
            return false;
        }
        return !name.equals("IntegralDivide") || divisor != -1 && child(expression, 0).dataType() instanceof IntegralType;
    }

    private static boolean alwaysCasts(Expression child, DataType to) {
        DataType from = child.dataType();
        return Cast$.MODULE$.canUpCast(from, to)
            || from instanceof NumericType && (isFloating(to) || to instanceof BooleanType)
            || from instanceof BooleanType && (isFloating(to) || to instanceof IntegralType)
            || from instanceof IntegralType && to instanceof IntegralType && most(child) < limitOf(to)
            || from instanceof TimestampType && (to instanceof DateType || isFloating(to))
            || from instanceof StringType && to instanceof BinaryType;
    }

    /** Whether an expression raises where it has no value; one that does not tell counts as if it did. */
    private static boolean raises(Expression expression) throws Exception {
        String types = expression.dataType().catalogString() + child(expression, 0).dataType().catalogString();
        if (types.contains("interval")) {  // in any mode: what overflows, and a text that is none
            return true;
        }
        Object context = Reflect.callIfAny(expression, "evalContext");  // of 4.x's aggregates
        Object mode = Reflect.callIfAny(context == null ? expression : context, "evalMode");
        if (mode != null) {
            return "ANSI".equals(mode.toString());
        }
        Object failOnError = Reflect.callIfAny(expression, "failOnError");
        Object ansiEnabled = Reflect.callIfAny(expression, "ansiEnabled");  // of Round
        return !Boolean.FALSE.equals(failOnError) && !Boolean.FALSE.equals(ansiEnabled);
    }

    // -- patterns, formats, what is parsed ------------------------------------------------------------

    private static boolean hasGoodPattern(Expression expression, String name) throws Exception {
        for (int i = 1; i < expression.children().size(); i++) {
            if (valueOf(child(expression, i)) == null) {
                return false;
            }
        }
        String text = valueOf(child(expression, 1)).toString();
        if (name.equals("Like")) {  // what may be escaped is for Spark to say
            return text.indexOf(((Character) Reflect.callIfAny(expression, "escapeChar")).charValue()) < 0;
        }
        Pattern pattern;
        try {
            pattern = Pattern.compile(text);
        } catch (PatternSyntaxException bad) {
            return false;
        }
        if (name.equals("RegExpReplace")) {  // a group that is not there, or nothing that is escaped
            String by = valueOf(child(expression, 2)).toString();
            if (by.indexOf('$') >= 0 || by.indexOf('\\') >= 0) {
                return false;
            }
        }
        if (name.startsWith("RegExpExtract")) {
            int group = ((Integer) valueOf(child(expression, 2))).intValue();
            if (group < 0 || group > pattern.matcher("").groupCount()) {
                return false;
            }
        }
        return !REPEATED_GROUP.matcher(text).find();
    }

    private static boolean hasGoodFormat(Expression expression) {
        Object format = valueOf(expression);
        if (format == null) {
            return false;
        }
        String text = format.toString();
        int start = 0;
        while (start < text.length()) {
            char letter = text.charAt(start);
            int end = start;
            while (end < text.length() && text.charAt(end) == letter) {
                end++;
            }
            if (" -/:.,_".indexOf(letter) < 0 && !FORMAT_LETTERS.contains(text.substring(start, end))) {
                return false;
            }
            start = end;
        }
        return true;
    }

    /** Whether a reader's options let it give what it can of what is malformed. */
    public static boolean isLenient(scala.collection.Map options) {
        for (Object each : JavaConverters.asJavaIterable(options)) {
            Tuple2 option = (Tuple2) each;
            if ("mode".equalsIgnoreCase((String) option._1()) && !"permissive".equalsIgnoreCase((String) option._2())) {
                return false;
            }
        }
        return true;
    }

    /** Whether values of a type are parsed without a format, which Spark may refuse. */
    private static boolean isPlain(DataType type) {
        if (type instanceof ArrayType) {
            return isPlain(((ArrayType) type).elementType());
        }
        if (type instanceof MapType) {
            return isPlain(((MapType) type).keyType()) && isPlain(((MapType) type).valueType());
        }
        if (type instanceof StructType) {
            StructField[] fields = ((StructType) type).fields();
            for (StructField one : fields) {
                if (!isPlain(one.dataType())) {
                    return false;
                }
            }
            return true;
        }
        return type instanceof NumericType || type instanceof StringType || type instanceof BooleanType;
    }
}
