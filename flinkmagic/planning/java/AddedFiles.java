package flinkmagic.planning;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Set;

import flinkmagic.jvm.Reflect;
import org.apache.spark.Partition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Some of the files of an index, in the partitions that the index has them in. A proxy: Scala's collections in the
 * index's methods are others on Spark 3.5.
 */
public class AddedFiles implements InvocationHandler {
    private final FileIndex all;
    private final Set added;

    public AddedFiles(FileIndex all, Set added) {
        this.all = all;
        this.added = added;
    }

    /**
     * The scan of some of the files that a scan reads, into no more partitions than that one has.
     *
     * @param added the paths of the files, as texts
     */
    public static FileSourceScanExec scan(FileSourceScanExec scan, Set added) throws Exception {
        HadoopFsRelation relation = scan.relation();
        Object index = Proxy.newProxyInstance(
            FileIndex.class.getClassLoader(), new Class[] {FileIndex.class}, new AddedFiles(relation.location(), added));
        Object[] parts = new Object[relation.productArity() + 1];
        for (int i = 0; i < relation.productArity(); i++) {
            parts[i] = relation.productElement(i) == relation.location() ? index : relation.productElement(i);
        }
        parts[relation.productArity()] = relation.sparkSession();
        Object some = Reflect.make(HadoopFsRelation.class, parts);
        Object[] arguments = new Object[scan.productArity()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = scan.productElement(i) == relation ? some : scan.productElement(i);
        }
        FileSourceScanExec made = (FileSourceScanExec) scan.makeCopy(arguments);
        made.copyTagsFrom(scan);
        bound(made.inputRDD(), scan.inputRDD().getNumPartitions());
        return made;
    }

    /** Fewer files are split into smaller parts, which may be more. */
    private static void bound(RDD rows, int most) throws Exception {
        Partition[] split = rows.partitions();
        if (split.length <= most) {
            return;
        }
        ArrayList[] files = new ArrayList[most];
        for (int i = 0; i < split.length; i++) {
            ArrayList some = files[i % most] == null ? new ArrayList() : files[i % most];
            files[i % most] = some;
            PartitionedFile[] own = ((FilePartition) split[i]).files();
            for (PartitionedFile each : own) {
                some.add(each);
            }
        }
        Partition[] parts = new Partition[most];
        for (int i = 0; i < most; i++) {
            parts[i] = new FilePartition(i, (PartitionedFile[]) files[i].toArray(new PartitionedFile[0]));
        }
        Reflect.field(RDD.class, "partitions_").set(rows, parts);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        if (name.equals("equals")) {
            return Boolean.valueOf(proxy == arguments[0]);
        }
        if (name.equals("hashCode")) {
            return Integer.valueOf(System.identityHashCode(proxy));
        }
        Object[] given = arguments == null ? new Object[0] : arguments;
        if (name.equals("listFiles")) {
            return some((Seq) Reflect.invoke(method, all, given));
        }
        if (name.equals("inputFiles")) {
            return added.toArray(new String[0]);
        }
        return Reflect.invoke(method, all, given);
    }

    private Seq some(Seq<PartitionDirectory> directories) {
        ArrayList found = new ArrayList();
        for (PartitionDirectory directory : JavaConverters.asJavaIterable(directories)) {
            ArrayList files = new ArrayList();
            for (FileStatusWithMetadata file : JavaConverters.asJavaIterable(directory.files())) {
                if (added.contains(file.getPath().toString())) {
                    files.add(file);
                }
            }
            if (!files.isEmpty()) {
                found.add(new PartitionDirectory(directory.values(), PlanNodes.vector(files)));
            }
        }
        return PlanNodes.vector(found);
    }
}
