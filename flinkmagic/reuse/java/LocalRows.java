package flinkmagic.reuse;

import java.security.MessageDigest;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;

import flinkmagic.jvm.Reflect;
import org.apache.spark.Partition;
import org.apache.spark.rdd.MapPartitionsRDD;
import org.apache.spark.rdd.ParallelCollectionPartition;
import org.apache.spark.rdd.ParallelCollectionRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Describes rows of the driver, as createDataFrame makes them: those of local relations, and of RDDs that are made of
 * such rows, with the functions of Spark's that convert these. Each call of it makes another object of the same rows.
 *
 * A function of Scala's counts by its class, of which there is one for each place in Spark's code, and by the values
 * that it holds. Seen on Spark 3.5 and 4.3.
 */
public class LocalRows {
    /** Rows of more bytes count by their identity. */
    private static final long MOST_BYTES = 16L << 20;

    /** So many rows of a local relation are worth a look at whether they are known. */
    private static final int MANY = 64;

    private static final int MOST_KNOWN = 500;

    /** Digests of rows by their RDDs, which stay as they are. */
    private static final Map<RDD, String> DIGESTS = Collections.synchronizedMap(new WeakHashMap());

    /** Digests of the rows of local relations, by their names. */
    private static final Map<String, String> KNOWN = Collections.synchronizedMap(new HashMap());

    private final MessageDigest made;
    private long bytes = 0;

    /** Rows of a local relation, one after the other. */
    public LocalRows() throws Exception {
        made = MessageDigest.getInstance("SHA-256");
    }

    /** Whether these are rows, and many. */
    public static boolean areMany(Seq values) {
        return values.lengthCompare(MANY) >= 0 && values.head() instanceof InternalRow;
    }

    /**
     * Names rows that live: planning puts the same rows into other collections. The first row is known by its number,
     * the others by what the JVM calls them meanwhile.
     */
    public static String name(Seq rows) {
        long mixed = 0;
        for (Object row : JavaConverters.asJavaIterable(rows)) {
            mixed = mixed * 1000003L + System.identityHashCode(row);
        }
        return Digests.identity(rows.head()) + " of " + rows.size() + " by " + mixed;
    }

    /** The digest of rows with a name; empty if they are too many, null if they were not met. */
    public static String known(String name) {
        return (String) KNOWN.get(name);
    }

    /** Note the digest of rows. */
    public static void know(String name, String digest) {
        if (KNOWN.size() >= MOST_KNOWN) {
            KNOWN.clear();
        }
        KNOWN.put(name, digest);
    }

    /** Take a row. */
    public void add(UnsafeRow row) throws Exception {
        Object base = row.getBaseObject();
        int size = row.getSizeInBytes();
        begin('u', size);
        if (base instanceof byte[]) {
            made.update((byte[]) base, (int) (row.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET), size);
        } else {
            made.update(row.getBytes());
        }
    }

    /** Take a row that is written as text, which is then empty. */
    public void add(StringBuilder text) throws Exception {
        byte[] written = text.toString().getBytes("UTF-8");
        begin('t', written.length);
        made.update(written);
        text.setLength(0);
    }

    private void begin(char kind, int size) {
        made.update((byte) kind);
        for (int shift = 24; shift >= 0; shift -= 8) {
            made.update((byte) (size >> shift));
        }
        bytes += size;
    }

    /** Whether these are more than are looked at. */
    public boolean isFull() {
        return bytes > MOST_BYTES;
    }

    /** What they are; empty if they are too many. */
    public String digest() {
        return isFull() ? "" : Digests.hex(made.digest());
    }

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
            return describeValue(Reflect.field(MapPartitionsRDD.class, "f").get(rdd), out);
        }
        return false;
    }

    /** The rows of each partition; empty if they are too many, or are not bytes, as Python ships them. */
    private static String digestOf(RDD rdd) throws Exception {
        StringBuilder parts = new StringBuilder();
        Partition[] partitions = rdd.partitions();
        long bytes = 0;
        for (Partition item : partitions) {
            parts.append('[');
            Iterator rows = ((ParallelCollectionPartition) item).iterator();
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
            for (Object one : Reflect.held(value, value.getClass())) {
                if (!describeValue(one, out)) {
                    return false;
                }
            }
        } else {
            return false;
        }
        return true;
    }
}
