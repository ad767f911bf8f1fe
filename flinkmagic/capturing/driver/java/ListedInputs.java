package flinkmagic.capturing.driver;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import flinkmagic.jvm.Reflect;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.JavaConverters;

/**
 * Compares the files that a plan's DataFrames have listed with those there now: one listing for each folder.
 */
public class ListedInputs {
    private final Map listings = new HashMap();

    /**
     * The listed files of an analysed plan that are gone, or whose size or modification time differs, as deflated
     * JSON: for each its path and its modification time in milliseconds, or null if it is gone.
     */
    public byte[] changed(LogicalPlan plan, Configuration conf) throws Exception {
        List found = new ArrayList();
        HashSet seen = new HashSet();
        for (FileStatus listed : listed(plan)) {
            if (!seen.add(listed.getPath())) {
                continue;
            }
            FileStatus now = (FileStatus) listing(listed.getPath(), conf).get(listed.getPath().getName());
            if (now == null || now.getLen() != listed.getLen()
                || now.getModificationTime() != listed.getModificationTime()) {
                Map<String, Object> entry = new LinkedHashMap<String, Object>();
                entry.put("path", listed.getPath().toString());
                entry.put("modified", now == null ? null : Long.valueOf(now.getModificationTime()));
                found.add(entry);
            }
        }
        return Reflect.deflated(found);
    }

    private static List<FileStatus> listed(LogicalPlan plan) {
        List<FileStatus> found = new ArrayList<FileStatus>();
        for (Object leaf : LeafReader.leavesOf(plan)) {
            if (leaf instanceof LogicalRelation && ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation) {
                addFiles((HadoopFsRelation) ((LogicalRelation) leaf).relation(), found);
            }
        }
        return found;
    }

    private static void addFiles(HadoopFsRelation relation, List<FileStatus> found) {
        if (relation.location() instanceof InMemoryFileIndex) {
            found.addAll(JavaConverters.seqAsJavaList(((InMemoryFileIndex) relation.location()).allFiles()));
        }
    }

    /** What lies in a file's folder, by name. */
    private Map listing(Path file, Configuration conf) throws Exception {
        Path folder = file.getParent();
        Map known = (Map) listings.get(folder);
        if (known == null) {
            known = new HashMap();
            listings.put(folder, known);
            FileSystem files = folder.getFileSystem(conf);
            if (files.exists(folder)) {
                FileStatus[] statuses = files.listStatus(folder);
                for (FileStatus each : statuses) {
                    known.put(each.getPath().getName(), each);
                }
            }
        }
        return known;
    }
}
