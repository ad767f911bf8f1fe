package flinkmagic.reuse;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import scala.collection.Iterator;

/**
 * The files that DataFrames have listed: by path, length and modification time.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class FileListings {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final IdentityHashMap<Object, Object[]> listings = new IdentityHashMap<Object, Object[]>();
    private final ArrayList<PartitioningAwareFileIndex> indexes = new ArrayList<PartitioningAwareFileIndex>();

    /** The number of an index, by which `changedFile` knows it, and a digest of the files that it has listed. */
    public Object[] of(PartitioningAwareFileIndex index) throws Exception {
        Object[] known = (Object[]) listings.get(index);
        if (known == null) {
            ArrayList lines = lines(index);
            Collections.sort(lines);
            known = new Object[] {Integer.valueOf(indexes.size()), Digests.sha(lines.toString().getBytes("UTF-8"))};
            indexes.add(index);
            listings.put(index, known);
        }
        return known;
    }

    /**
     * What an index has listed: its roots, its files, and whether it leaves out some of what lies in the roots, as
     * pathGlobFilter asks for.
     */
    public Map facts(int number) {
        PartitioningAwareFileIndex index = (PartitioningAwareFileIndex) indexes.get(number);
        ArrayList<String> roots = new ArrayList<String>();
        boolean isFiltered = false;
        Iterator paths = index.rootPaths().iterator();
        while (paths.hasNext()) {
            Path root = (Path) paths.next();
            roots.add(root.toString());
            isFiltered |= !index.matchPathPattern(new FileStatus(0L, false, 0, 0L, 0L, new Path(root, "any file")));
        }
        Map<String, Object> facts = new HashMap<String, Object>();
        facts.put("roots", roots);
        facts.put("files", lines(index));
        facts.put("filtered", Boolean.valueOf(isFiltered));
        return facts;
    }

    /**
     * The first file of some indexes that is no longer what was listed; empty if all are.
     *
     * @param numbers those of the indexes, with blanks between them
     */
    public String changedFile(String numbers, Configuration conf) throws Exception {
        String[] each = numbers.split(" ");
        for (String one : each) {
            String changed = changedSince((PartitioningAwareFileIndex) indexes.get(Integer.parseInt(one)), conf);
            if (changed.length() > 0) {
                return changed;
            }
        }
        return "";
    }

    /** The first file of an index that is no longer what was listed; empty if all are. */
    private String changedSince(PartitioningAwareFileIndex index, Configuration conf) throws Exception {
        HashMap<Path, Object> now = new HashMap<Path, Object>();
        Iterator files = index.allFiles().iterator();
        while (files.hasNext()) {
            FileStatus file = (FileStatus) files.next();
            Path folder = file.getPath().getParent();
            HashMap there = (HashMap) now.get(folder);
            if (there == null) {
                there = new HashMap();
                now.put(folder, there);
                try {
                    FileStatus[] listed = folder.getFileSystem(conf).listStatus(folder);
                    for (FileStatus one : listed) {
                        there.put(one.getPath().getName(), line(one));
                    }
                } catch (java.io.FileNotFoundException gone) {
                    return folder.toString();
                }
            }
            if (!line(file).equals(there.get(file.getPath().getName()))) {
                return file.getPath().toString();
            }
        }
        return "";
    }

    /** As JSON the files below a path: path, length, modification time; null if there is nothing. */
    public static String listing(String root, Configuration conf) throws Exception {
        Path path = new Path(root);
        org.apache.hadoop.fs.FileSystem files = path.getFileSystem(conf);
        if (!files.exists(path)) {
            return "null";
        }
        ArrayList found = new ArrayList();
        org.apache.hadoop.fs.RemoteIterator all = files.listFiles(path, true);
        while (all.hasNext()) {
            found.add(line((FileStatus) all.next()));
        }
        Collections.sort(found);
        return JSON.writeValueAsString(found);
    }

    private static ArrayList lines(PartitioningAwareFileIndex index) {
        ArrayList lines = new ArrayList();
        Iterator all = index.allFiles().iterator();
        while (all.hasNext()) {
            lines.add(line((FileStatus) all.next()));
        }
        return lines;
    }

    private static String line(FileStatus file) {
        return file.getPath() + "|" + file.getLen() + "|" + file.getModificationTime();
    }
}
