package flinkmagic.reuse;

import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

import org.apache.spark.Partition;
import org.apache.spark.rdd.MapPartitionsRDD;
import org.apache.spark.rdd.ParallelCollectionPartition;
import org.apache.spark.rdd.ParallelCollectionRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.types.DataType;
import scala.collection.Iterator;

/**
 * Describes RDDs that are made of rows of the driver, as createDataFrame makes them: by the rows, and by the functions
 * of Spark's that convert these. Each call of it makes another RDD of the same rows.
 *
 * A function of Scala's counts by its class, of which there is one for each place in Spark's code, and by the values
 * that it holds. Written for Janino: no lambdas, no type inference, raw collections. Seen on Spark 3.5 and 4.3.
 */
public class LocalRows {
    /** Rows of more bytes count by the identity of their RDD. */
    private static final long MOST_BYTES = 16L << 20;

    /** Digests of rows by their RDDs, which stay as they are. */
    private static final Map DIGESTS = Collections.synchronizedMap(new WeakHashMap());

    /** Writes one RDD of a lineage; false if it is of another kind. */
    public static boolean describe(RDD rdd, StringBuilder out) throws Exception {
        if (rdd instanceof ParallelCollectionRDD) {
            String digest = (String) DIGESTS.get(rdd);
            if (digest == null) {
                digest = digestOf(rdd);
                DIGESTS.put(rdd, digest);
            }
            Digests.text("data", digest, out);
            return digest.length() > 0;
        }
        if (rdd instanceof MapPartitionsRDD) {
            Field function = MapPartitionsRDD.class.getDeclaredField("f");
            function.setAccessible(true);
            return describeValue(function.get(rdd), out);
        }
        return false;
    }

    /** The rows of each partition; empty if they are too many, or are not bytes, as Python ships them. */
    private static String digestOf(RDD rdd) throws Exception {
        StringBuilder parts = new StringBuilder();
        Partition[] partitions = rdd.partitions();
        long bytes = 0;
        for (int i = 0; i < partitions.length; i++) {
            parts.append('[');
            Iterator rows = ((ParallelCollectionPartition) partitions[i]).iterator();
            while (rows.hasNext()) {
                Object row = rows.next();
                bytes += row instanceof byte[] ? ((byte[]) row).length : MOST_BYTES + 1;
                if (bytes > MOST_BYTES) {
                    return "";
                }
                parts.append(Digests.sha((byte[]) row)).append(',');
            }
            parts.append(']');
        }
        return Digests.sha(parts.toString().getBytes("UTF-8"));
    }

    private static boolean describeValue(Object value, StringBuilder out) throws Exception {
        if (value == null) {
            out.append("null,");
        } else if (Digests.isText(value)) {
            Digests.text(value.getClass().getName(), value.toString(), out);
        } else if (value instanceof DataType) {
            Digests.text("type", ((DataType) value).json(), out);
        } else if (value.getClass().getName().matches("org\\.apache\\.spark\\..*\\$\\$Lambda.*")) {
            Digests.text("function", value.getClass().getName(), out);
            Field[] held = value.getClass().getDeclaredFields();
            for (int i = 0; i < held.length; i++) {
                held[i].setAccessible(true);
                if (!describeValue(held[i].get(value), out)) {
                    return false;
                }
            }
        } else {
            return false;
        }
        return true;
    }
}
