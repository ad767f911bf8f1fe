package flinkmagic.reuse;

import java.lang.ref.WeakReference;
import java.security.MessageDigest;
import java.util.ArrayList;

import org.apache.hadoop.fs.Path;

/**
 * What digests are made from: bytes, texts, and the identities of objects.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class Digests {
    /** Objects that were met in this JVM, as long as they live: their number represents their identity. */
    private static final ArrayList<Object[]> MET = new ArrayList<Object[]>();
    private static int met = 0;

    /** SHA-256, as hexadecimal digits. */
    public static String sha(byte[] bytes) throws Exception {
        return hex(MessageDigest.getInstance("SHA-256").digest(bytes));
    }

    /** Hexadecimal digits. */
    public static String hex(byte[] digest) {
        StringBuilder hex = new StringBuilder();
        for (byte each : digest) {
            hex.append(Character.forDigit((each >> 4) & 15, 16)).append(Character.forDigit(each & 15, 16));
        }
        return hex.toString();
    }

    /** Writes a text after its kind and length, so that no two lists of texts are written alike. */
    public static void text(String kind, String text, StringBuilder out) {
        out.append(kind).append(' ').append(text.length()).append(':').append(text);
    }

    /** Whether the text of an object describes all of it. */
    public static boolean isText(Object value) {
        return value instanceof String || value instanceof Number
            || value instanceof Boolean || value instanceof Character || value instanceof Enum
            || value instanceof Path || value instanceof java.net.URI
            || value instanceof org.apache.spark.sql.types.Decimal
            || value instanceof org.apache.spark.unsafe.types.CalendarInterval
            || value instanceof org.apache.spark.storage.StorageLevel
            || value.getClass().getName().startsWith("scala.Enumeration$");
    }

    /** The beginning of a text, for a message. */
    public static String shortened(String text) {
        return text.length() > 60 ? text.substring(0, 57) + "..." : text;
    }

    /** A copy of a value in memory that Spark manages. */
    public static byte[] bytesOf(Object base, long offset, int size) {
        byte[] copy = new byte[size];
        org.apache.spark.unsafe.Platform.copyMemory(
            base, offset, copy, org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET, (long) size);
        return copy;
    }

    /** A number for an object; no other living object has the same. */
    public static int identity(Object object) {
        synchronized (MET) {
            for (int i = MET.size() - 1; i >= 0; i--) {
                Object[] entry = (Object[]) MET.get(i);
                Object one = ((WeakReference) entry[0]).get();
                if (one == object) {
                    return ((Integer) entry[1]).intValue();
                }
                if (one == null) {
                    MET.remove(i);
                }
            }
            met++;
            MET.add(new Object[] {new WeakReference(object), Integer.valueOf(met)});
            return met;
        }
    }
}
