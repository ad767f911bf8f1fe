package flinkmagic.planning;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashSet;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Which optimised plans are total: they give rows for every input, so that nobody notices that they were computed.
 *
 * What is not named here is partial: it may raise, hang or have effects on rows that no action asks for. Spark's own
 * `Expression.throwable` is no help, as `Divide` and `Cast` do not override it. Seen on 3.5.9 and 4.3.0, whose
 * expressions say by `evalMode` or `failOnError` whether they raise.
 */
public class TotalPlans {
    private static final HashSet OPERATORS = new HashSet(Arrays.asList(new Object[] {
        "Aggregate", "CTERelationDef", "CTERelationRef", "DataSourceV2ScanRelation", "Distinct", "Expand", "Filter",
        "Generate", "GlobalLimit", "HiveTableRelation", "InMemoryRelation", "Join", "LocalLimit", "LocalRelation",
        "LogicalRelation", "Offset", "OneRowRelation", "Project", "Range", "RebalancePartitions", "Repartition",
        "RepartitionByExpression", "ResolvedHint", "Sample", "Sort", "SubqueryAlias", "Union", "View", "Window",
        "WindowGroupLimit", "WithCTE"
    }));

    private static final HashSet EXPRESSIONS = new HashSet(Arrays.asList(new Object[] {
        // columns, constants, conditions
        "Alias", "And", "AtLeastNNonNulls", "AttributeReference", "CaseWhen", "Coalesce", "EqualNullSafe", "EqualTo",
        "GreaterThan", "GreaterThanOrEqual", "Greatest", "If", "In", "InSet", "IsNaN", "IsNotNull", "IsNull",
        "KnownFloatingPointNormalized", "KnownNotNull", "KnownNullable", "Least", "LessThan", "LessThanOrEqual",
        "Literal", "NaNvl", "NormalizeNaNAndZero", "Not", "Or", "SortOrder",
        // text
        "Ascii", "BitLength", "Concat", "Contains", "EndsWith", "InitCap", "Length", "Levenshtein", "Lower", "OctetLength",
        "Reverse", "StartsWith", "StringInstr", "StringReplace", "StringTrim", "StringTrimLeft", "StringTrimRight",
        "StringTranslate", "Substring", "SubstringIndex", "Upper",
        // dates, if they are dates already
        "DateDiff", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hour", "LastDay", "Minute", "Month", "Quarter",
        "Second", "TruncDate", "TruncTimestamp", "WeekDay", "WeekOfYear", "Year", "YearOfWeek",
        // doubles
        "Atan", "Atan2", "Cbrt", "Ceil", "Cos", "Cosh", "Exp", "Expm1", "Floor", "Hypot", "Log", "Log10", "Log1p",
        "Log2", "Logarithm", "Pow", "Rint", "Signum", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "ToDegrees", "ToRadians",
        // hashes, chance, where a row is
        "Crc32", "InputFileName", "Md5", "MonotonicallyIncreasingID", "Murmur3Hash", "Rand", "Randn", "Sha1", "Sha2",
        "SparkPartitionID", "XxHash64",
        // structures
        "ArrayContains", "CreateArray", "CreateNamedStruct", "Explode", "GetArrayStructFields", "GetMapValue",
        "GetStructField", "MapKeys", "MapValues", "PosExplode", "Size", "SortArray",
        // aggregates and windows
        "AggregateExpression", "ApproximatePercentile", "Corr", "Count", "CovPopulation", "CovSample", "CumeDist",
        "CurrentRow$", "DenseRank", "First", "HyperLogLogPlusPlus", "Lag", "Last", "Lead", "Max", "Min", "NTile",
        "PercentRank", "Rank", "RowNumber", "SpecifiedWindowFrame", "StddevPop", "StddevSamp",
        "UnboundedFollowing$", "UnboundedPreceding$", "VariancePop", "VarianceSamp", "WindowExpression",
        "WindowSpecDefinition"
    }));

    /** Total on doubles and floats; on whole numbers and decimals unless they raise on overflow. */
    private static final HashSet OVERFLOWING = new HashSet(Arrays.asList(new Object[] {
        "Abs", "Add", "BRound", "Multiply", "Round", "Subtract", "UnaryMinus"
    }));

    /** Total unless they raise on a divisor of zero, whatever the type; or if it is a constant that is not. */
    private static final HashSet DIVIDING = new HashSet(Arrays.asList(new Object[] {
        "Divide", "IntegralDivide", "Pmod", "Remainder"
    }));

    /** Total unless they raise on an index or a key that is missing. */
    private static final HashSet INDEXING = new HashSet(Arrays.asList(new Object[] {"ElementAt", "GetArrayItem"}));

    /** Total if the pattern is a constant that can be compiled. */
    private static final HashSet MATCHING = new HashSet(Arrays.asList(new Object[] {
        "Like", "RLike", "RegExpReplace", "StringSplit"
    }));

    /** Whether an optimised plan is total. */
    public boolean isTotal(LogicalPlan plan) throws Exception {
        TreeSet found = new TreeSet();
        addPartial(plan, found);
        return found.isEmpty();
    }

    /** What of an optimised plan is partial; what two plans of the same DataFrames have in common has the same name. */
    public static TreeSet partialOf(LogicalPlan plan) throws Exception {
        TreeSet found = new TreeSet();
        addPartial(plan, found);
        return found;
    }

    /** Whether an operator is total, whatever is below it. */
    public static boolean isTotalItself(LogicalPlan plan) throws Exception {
        TreeSet found = new TreeSet();
        addOwn(plan, found);
        return found.isEmpty();
    }

    private static void addOwn(LogicalPlan plan, TreeSet found) throws Exception {
        String name = plan.getClass().getSimpleName();
        if (!OPERATORS.contains(name) || !isTolerant(plan)) {
            found.add(name);
        }
        Iterator expressions = plan.expressions().iterator();
        while (expressions.hasNext()) {
            addPartial((Expression) expressions.next(), found);
        }
    }

    private static void addPartial(LogicalPlan plan, TreeSet found) throws Exception {
        addOwn(plan, found);
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            addPartial((LogicalPlan) children.next(), found);
        }
    }

    private static void addPartial(Expression expression, TreeSet found) throws Exception {
        if (!isTotal(expression)) {
            found.add(expression.canonicalized().toString());
        }
        Iterator children = expression.children().iterator();
        while (children.hasNext()) {
            addPartial((Expression) children.next(), found);
        }
    }

    /** Which rows text files give, or whether they raise, depends on the columns asked for, but in PERMISSIVE mode. */
    private static boolean isTolerant(LogicalPlan plan) {
        if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
            return true;
        }
        Iterator options = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).options().iterator();
        while (options.hasNext()) {
            Tuple2 option = (Tuple2) options.next();
            if ("mode".equalsIgnoreCase((String) option._1()) && !"permissive".equalsIgnoreCase((String) option._2())) {
                return false;
            }
        }
        return true;
    }

    /** Whether an expression is total, whatever is inside it. */
    public static boolean isTotal(Expression expression) throws Exception {
        String name = expression.getClass().getSimpleName();
        if (EXPRESSIONS.contains(name)) {
            return true;
        }
        if (expression instanceof Cast) {
            return !raises(expression) || alwaysCasts(((Cast) expression).child().dataType(), expression.dataType());
        }
        if (expression instanceof Average) {  // of whole numbers: Spark adds them up as doubles
            DataType type = ((Expression) expression.children().head()).dataType();
            return type instanceof NumericType && !(type instanceof DecimalType) || !raises(expression);
        }
        if (OVERFLOWING.contains(name) || expression instanceof Sum) {
            return isFloating(expression) || !raises(expression);
        }
        if (DIVIDING.contains(name)) {
            return !raises(expression) || hasGoodDivisor(expression, name);
        }
        if (INDEXING.contains(name)) {
            return !raises(expression);
        }
        return MATCHING.contains(name) && hasGoodPattern(expression, name);
    }

    private static boolean isFloating(Expression expression) {
        Iterator children = expression.children().iterator();
        while (children.hasNext()) {
            Expression child = (Expression) children.next();
            DataType type = child.dataType();
            if (!(child instanceof Literal) && !(type instanceof DoubleType) && !(type instanceof FloatType)) {
                return false;
            }
        }
        return true;
    }

    /** The least whole number divided by -1 overflows, a decimal by a small one; no remainder does. */
    private static boolean hasGoodDivisor(Expression expression, String name) {
        Expression divisor = (Expression) expression.children().apply(1);
        if (!(divisor instanceof Literal) || !(((Literal) divisor).value() instanceof Number)) {
            return false;
        }
        boolean fits = name.equals("Remainder") || name.equals("Pmod") || isFloating(expression);
        return fits && ((Number) ((Literal) divisor).value()).doubleValue() != 0;
    }

    private static boolean alwaysCasts(DataType from, DataType to) {
        return Cast$.MODULE$.canUpCast(from, to)
            || from instanceof NumericType
                && (to instanceof DoubleType || to instanceof FloatType || to instanceof BooleanType)
            || from instanceof TimestampType && to instanceof DateType
            || from instanceof StringType && to instanceof BinaryType;
    }

    /** Whether an expression raises where it has no value; one that does not tell counts as if it did. */
    private static boolean raises(Expression expression) throws Exception {
        Object context = asked(expression, "evalContext");  // of 4.x's aggregates
        Object mode = asked(context == null ? expression : context, "evalMode");
        if (mode != null) {
            return "ANSI".equals(mode.toString());
        }
        Object failOnError = asked(expression, "failOnError");
        Object ansiEnabled = asked(expression, "ansiEnabled");  // of Round
        return !Boolean.FALSE.equals(failOnError) && !Boolean.FALSE.equals(ansiEnabled);
    }

    private static Object asked(Object one, String name) throws Exception {
        Method method;
        try {
            method = one.getClass().getMethod(name, new Class[0]);
        } catch (NoSuchMethodException none) {
            return null;
        }
        try {
            return method.invoke(one, new Object[0]);
        } catch (InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
    }

    private static boolean hasGoodPattern(Expression expression, String name) {
        Expression pattern = (Expression) expression.children().apply(1);
        if (!(pattern instanceof Literal) || ((Literal) pattern).value() == null) {
            return false;
        }
        Iterator others = expression.children().iterator();
        others.next();
        while (others.hasNext()) {
            if (!(others.next() instanceof Literal)) {
                return false;
            }
        }
        String text = ((Literal) pattern).value().toString();
        if (name.equals("Like")) {
            return text.indexOf('\\') < 0;  // what may be escaped is for Spark to say
        }
        if (name.equals("RegExpReplace") && ((Expression) expression.children().apply(2)).toString().indexOf('$') >= 0) {
            return false;  // a group that is not there
        }
        try {
            Pattern.compile(text);
            return true;
        } catch (PatternSyntaxException bad) {
            return false;
        }
    }
}
