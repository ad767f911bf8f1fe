package flinkmagic.planning;

import java.util.ArrayList;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.DefaultCachedBatchSerializer;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import scala.Function2;
import scala.collection.JavaConverters;

/**
 * Stores rows as Spark's caches do, but no filter on floating-point columns leaves out a batch of them.
 *
 * A batch's bounds of such a column (`FloatColumnStats`, `DoubleColumnStats`; seen in Spark 3.5 and 4.3) do not cover NaN,
 * which SQL takes to be greater than all other numbers and equal to itself. A user who caches accepts the rows that Spark
 * loses by that; what is kept for reuse must not change an answer.
 */
@SuppressWarnings("serial") // it is replaced
public class ExactBatchSerializer extends DefaultCachedBatchSerializer {
    /** Has a relation's rows stored so; one whose session has a serializer of the user's keeps that. */
    public static InMemoryRelation use(InMemoryRelation relation) throws Exception {
        if (relation.cacheBuilder().serializer().getClass() == DefaultCachedBatchSerializer.class) {
            Reflect.field(CachedRDDBuilder.class, "serializer").set(relation.cacheBuilder(), new ExactBatchSerializer());
        }
        return relation;
    }

    public Function2 buildFilter(scala.collection.Seq predicates, scala.collection.Seq columns) {
        ArrayList<Object> exact = new ArrayList<Object>();
        for (Object predicate : JavaConverters.seqAsJavaList(predicates)) {
            if (isExact((Expression) predicate)) {
                exact.add(predicate);
            }
        }
        ArrayList all = new ArrayList(JavaConverters.seqAsJavaList(columns));
        return new DefaultCachedBatchSerializer().buildFilter(PlanNodes.vector(exact), PlanNodes.vector(all));
    }

    /** The same; it has this signature in Scala 2.13. */
    public Function2 buildFilter(scala.collection.immutable.Seq predicates, scala.collection.immutable.Seq columns) {
        return buildFilter((scala.collection.Seq) predicates, (scala.collection.Seq) columns);
    }

    private static boolean isExact(Expression predicate) {
        for (Object column : JavaConverters.asJavaIterable(predicate.references())) {
            if (((Attribute) column).dataType() instanceof DoubleType
                || ((Attribute) column).dataType() instanceof FloatType) {
                return false;
            }
        }
        return true;
    }

    /**
     * What tasks get instead: executors do not have this class, and which batches are left out is decided before. (Not
     * private: Janino makes another method of one that is.)
     */
    protected Object writeReplace() {
        return new DefaultCachedBatchSerializer();
    }
}
