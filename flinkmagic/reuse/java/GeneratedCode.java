package flinkmagic.reuse;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.zip.CRC32;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.InflaterInputStream;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.catalyst.expressions.codegen.ByteCodeStats;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator$;
import org.apache.spark.sql.catalyst.expressions.codegen.GeneratedClass;
import org.apache.spark.util.NonFateSharingCache;
import org.apache.spark.util.Utils;
import org.codehaus.commons.compiler.util.reflect.ByteArrayClassLoader;
import org.codehaus.janino.util.ClassFile;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkproject.guava.cache.ForwardingLoadingCache;
import org.sparkproject.guava.cache.LoadingCache;
import scala.Product;
import scala.Tuple2;

/**
 * Stands before Spark's cache of compiled code: finds what this JVM has compiled for another class loader, or has
 * forgotten, and what an earlier kernel has compiled.
 *
 * Spark keeps 100 classes (spark.sql.codegen.cache.maxEntries), and compiles the same text once for each class loader:
 * in local mode once for the driver's threads and once for the tasks'. Only code is shared that names no classes but
 * Java's and Spark's own: to all loaders those are the same. It is loaded by the loader of Spark, which sees no others.
 *
 * A file holds records, each written by one call: what a kernel wrote last before it was killed may be incomplete.
 * Seen on Spark 3.5 and 4.3 (CodeGenerator.cache; Janino 3.1.9).
 */
public class GeneratedCode extends ForwardingLoadingCache implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(GeneratedCode.class);
    private static final String CLASS = "org.apache.spark.sql.catalyst.expressions.GeneratedClass";
    private static final int MOST_CLASSES = 400;
    private static final long MOST_BYTES = 16L << 20;

    private final ClassLoader base = Utils.getSparkClassLoader();
    private final LinkedHashMap<String, Tuple2> known = new LinkedHashMap(64, 0.75f, true);
    /** By digest the file, the place of the content in it, and its facts: three numbers of Spark's, length and sum. */
    private final HashMap<String, Object[]> filed = new HashMap();
    private final LinkedBlockingQueue<Object[]> unwritten = new LinkedBlockingQueue();
    private LoadingCache sparks;
    private File file;
    private volatile boolean isWritten = true;

    /**
     * Put this before Spark's cache, once for a JVM.
     *
     * @param read the files of earlier kernels, one on each line
     * @param written the file that this kernel may write
     */
    public synchronized void install(String read, String written) throws Exception {
        if (sparks != null) {
            return;
        }
        for (String path : read.split("\n")) {
            if (!path.isEmpty()) {
                index(new File(path));
            }
        }
        file = new File(written);
        Object outer = Reflect.field(CodeGenerator$.class, "cache").get(CodeGenerator$.MODULE$);
        Field inner = Reflect.field(NonFateSharingCache.class, "cache");
        sparks = (LoadingCache) inner.get(outer);
        Thread writer = new Thread(this, "flinkmagic-generated-code");
        writer.setDaemon(true);
        writer.start();
        inner.set(outer, this);
    }

    @Override
    protected LoadingCache delegate() {
        return sparks;
    }

    @Override
    public Object get(Object key) throws ExecutionException {
        String digest = digest((Product) key);
        Tuple2 found = digest == null ? null : find(digest);
        if (found != null) {
            return found;
        }
        Tuple2 made = (Tuple2) sparks.get(key);
        if (digest != null) {
            note(digest, made);
        }
        return made;
    }

    /** The digest of the text of code that Janino compiles; null if another compiler does. */
    private static String digest(Product key) {
        int last = key.productArity() - 1;
        if (last == 2 && !key.productElement(1).getClass().getName().contains("JaninoCodeCompiler")) {
            return null;
        }
        byte[] text = ((CodeAndComment) key.productElement(last)).body().getBytes(StandardCharsets.UTF_8);
        try {
            return new BigInteger(1, MessageDigest.getInstance("SHA-256").digest(text)).toString(36);
        } catch (java.security.NoSuchAlgorithmException impossible) {  // each Java has it
            throw new IllegalStateException(impossible);
        }
    }

    private Tuple2 find(String digest) {
        Object[] place;
        synchronized (this) {
            Tuple2 found = (Tuple2) known.get(digest);
            if (found != null) {
                return found;
            }
            place = (Object[]) filed.remove(digest);
        }
        if (place == null) {
            return null;
        }
        try {
            Tuple2 read = read(digest, (File) place[0], ((Long) place[1]).longValue(), (int[]) place[2]);
            remember(digest, read);
            return read;
        } catch (Exception damaged) {
            LOG.debug("generated code is compiled again: {}", damaged.toString());
        } catch (LinkageError other) {
            LOG.debug("generated code is compiled again: {}", other.toString());
        }
        return null;
    }

    private synchronized void remember(String digest, Tuple2 code) {
        known.put(digest, code);
        if (known.size() > MOST_CLASSES) {
            known.remove(known.keySet().iterator().next());
        }
    }

    private void note(String digest, Tuple2 made) {
        try {
            Map<String, byte[]> classes = classesOf(made._1());
            if (classes != null && namesSparksAlone(classes)) {
                remember(digest, made);
                if (isWritten) {
                    unwritten.add(new Object[] {digest, made._2(), classes});
                }
            }
        } catch (Exception other) {
            LOG.debug("generated code is not kept: {}", other.toString());
        }
    }

    /** The class files of what Janino has compiled; null if another compiler has. */
    private static Map<String, byte[]> classesOf(Object compiled) throws Exception {
        ClassLoader loader = compiled.getClass().getClassLoader();
        if (!(loader instanceof ByteArrayClassLoader)) {
            return null;
        }
        return (Map) Reflect.field(ByteArrayClassLoader.class, "classes").get(loader);
    }

    /** Whether classes name none but Java's, Spark's and each other. */
    public boolean namesSparksAlone(Map<String, byte[]> classes) throws IOException {
        for (byte[] content : classes.values()) {
            ClassFile read = new ClassFile(new ByteArrayInputStream((byte[]) content));
            int step;
            for (int place = 1; place < read.getConstantPoolSize(); place += step) {
                ClassFile.ConstantPoolInfo info = read.getConstantPoolInfo((short) place);
                step = info.isWide() ? 2 : 1;
                if (!(info instanceof ClassFile.ConstantClassInfo)) {
                    continue;
                }
                String name = ((ClassFile.ConstantClassInfo) info).getName(read).replace('/', '.');
                if (name.startsWith("[")) {
                    int element = name.lastIndexOf('[') + 1;
                    if (name.charAt(element) != 'L') {
                        continue;
                    }
                    name = name.substring(element + 1, name.length() - 1);
                }
                if (!classes.containsKey(name) && !isSparks(name)) {
                    return false;
                }
            }
        }
        return true;
    }

    private boolean isSparks(String name) {
        try {
            Class.forName(name, false, base);
            return true;
        } catch (ClassNotFoundException users) {
            return false;
        } catch (LinkageError users) {
            return false;
        }
    }

    /** Note where the records of a file are. */
    private void index(File read) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(read)));
        long at = 0;
        try {
            while (true) {
                String digest = in.readUTF();
                int[] facts = new int[5];
                for (int place = 0; place < facts.length; place++) {
                    facts[place] = in.readInt();
                }
                at += 2 + digest.length() + 4 * facts.length;
                if (facts[3] < 0 || at + facts[3] > read.length()) {
                    return;
                }
                in.skipNBytes(facts[3]);
                filed.put(digest, new Object[] {read, Long.valueOf(at), facts});
                at += facts[3];
            }
        } catch (IOException end) {  // of the file, or of what can be read of it
            return;
        } finally {
            in.close();
        }
    }

    private Tuple2 read(String digest, File from, long at, int[] facts) throws Exception {
        byte[] content = new byte[facts[3]];
        RandomAccessFile open = new RandomAccessFile(from, "r");
        try {
            open.seek(at);
            open.readFully(content);
        } finally {
            open.close();
        }
        if (sum(digest, facts, content) != facts[4]) {
            throw new IOException(from + " is damaged");
        }
        from.setLastModified(System.currentTimeMillis());  // what nobody reads any more goes first
        HashMap<String, byte[]> classes = new HashMap();
        DataInputStream in = new DataInputStream(new InflaterInputStream(new ByteArrayInputStream(content)));
        for (int left = in.readInt(); left > 0; left--) {
            String name = in.readUTF();
            byte[] each = new byte[in.readInt()];
            in.readFully(each);
            classes.put(name, each);
        }
        Class made = new ByteArrayClassLoader(classes, base).loadClass(CLASS);
        GeneratedClass code = (GeneratedClass) Reflect.make(made, new Object[0]);
        return new Tuple2(code, new ByteCodeStats(facts[0], facts[1], facts[2]));
    }

    private static int sum(String digest, int[] facts, byte[] content) {
        CRC32 sum = new CRC32();
        sum.update((digest + " " + facts[0] + " " + facts[1] + " " + facts[2]).getBytes(StandardCharsets.UTF_8));
        sum.update(content, 0, content.length);
        return (int) sum.getValue();
    }

    /** Write what was compiled, until the file is full. */
    @Override
    public void run() {
        try {
            while (file.length() < MOST_BYTES) {
                Object[] each = (Object[]) unwritten.take();
                byte[] record = record((String) each[0], (ByteCodeStats) each[1], (Map) each[2]);
                FileOutputStream out = new FileOutputStream(file, true);
                try {
                    out.write(record);
                } finally {
                    out.close();
                }
            }
        } catch (IOException full) {
            LOG.debug("generated code is not written: {}", full.toString());
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        } finally {
            isWritten = false;
            unwritten.clear();
        }
    }

    private static byte[] record(String digest, ByteCodeStats stats, Map<String, byte[]> classes) throws IOException {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        DataOutputStream content = new DataOutputStream(new DeflaterOutputStream(packed));
        content.writeInt(classes.size());
        for (Map.Entry<String, byte[]> each : classes.entrySet()) {
            byte[] bytes = (byte[]) each.getValue();
            content.writeUTF((String) each.getKey());
            content.writeInt(bytes.length);
            content.write(bytes);
        }
        content.close();
        int[] facts = {stats.maxMethodCodeSize(), stats.maxConstPoolSize(), stats.numInnerClasses(), packed.size(), 0};
        facts[4] = sum(digest, facts, packed.toByteArray());
        ByteArrayOutputStream record = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(record);
        out.writeUTF(digest);
        for (int fact : facts) {
            out.writeInt(fact);
        }
        packed.writeTo(out);
        return record.toByteArray();
    }
}
