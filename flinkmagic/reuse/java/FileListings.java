package flinkmagic.reuse;

import java.io.File;
import java.io.FileNotFoundException;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.FileTime;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import scala.collection.JavaConverters;

/**
 * The files that DataFrames have listed: by path, length and modification time, local ones also by inode and change
 * time. A local file that is replaced, or written to, and then given its former length and time, has others of these.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class FileListings {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** What was listed, by its digest, as long as anybody refers to it: the results of many jobs read the same files. */
    private static final HashMap<String, WeakReference<HashMap<String, String>>> LISTED =
        new HashMap<String, WeakReference<HashMap<String, String>>>();

    private final IdentityHashMap<Object, Object[]> listings = new IdentityHashMap<Object, Object[]>();
    private final ArrayList<PartitioningAwareFileIndex> indexes = new ArrayList<PartitioningAwareFileIndex>();

    /**
     * The number of an index, by which `changedFile` knows it, a digest of the files that it has listed, whether all of
     * them are stamped, and their stamps by path.
     */
    public Object[] of(PartitioningAwareFileIndex index) throws Exception {
        Object[] known = (Object[]) listings.get(index);
        if (known == null) {
            ArrayList<String> lines = new ArrayList<String>();
            HashMap<Path, String> stamps = new HashMap<Path, String>();
            boolean areStamped = true;
            for (FileStatus file : JavaConverters.asJavaIterable(index.allFiles())) {
                String stamp = stamp(file.getPath());
                areStamped &= stamp.length() > 0;
                stamps.put(file.getPath(), stamp);
                lines.add(line(file) + "|" + stamp);
            }
            Collections.sort(lines);
            known = new Object[] {
                Integer.valueOf(indexes.size()), Digests.sha(lines.toString().getBytes("UTF-8")),
                Boolean.valueOf(areStamped), stamps
            };
            indexes.add(index);
            listings.put(index, known);
        }
        return known;
    }

    /** The indexes of some numbers, which have blanks between them. */
    private ArrayList<PartitioningAwareFileIndex> indexesOf(String numbers) {
        ArrayList<PartitioningAwareFileIndex> found = new ArrayList<PartitioningAwareFileIndex>();
        String[] each = numbers.split(" ");
        for (String number : each) {
            found.add(indexes.get(Integer.parseInt(number)));
        }
        return found;
    }

    /** What some indexes have listed, to be compared with what later ones have: by index a digest, and the files. */
    public ArrayList<Object[]> states(String numbers) throws Exception {
        ArrayList<Object[]> states = new ArrayList<Object[]>();
        for (PartitioningAwareFileIndex index : indexesOf(numbers)) {
            states.add(new Object[] {of(index)[1], listed((String) of(index)[1], index)});
        }
        return states;
    }

    private HashMap<String, String> listed(String digest, PartitioningAwareFileIndex index) throws Exception {
        synchronized (LISTED) {
            LISTED.values().removeIf(new Cleared());
            WeakReference<HashMap<String, String>> known = (WeakReference<HashMap<String, String>>) LISTED.get(digest);
            HashMap<String, String> files = known == null ? null : (HashMap<String, String>) known.get();
            if (files == null) {
                files = new HashMap<String, String>();
                HashMap<Path, String> stamps = (HashMap<Path, String>) of(index)[3];
                for (FileStatus file : JavaConverters.asJavaIterable(index.allFiles())) {
                    files.put(file.getPath().toString(), line(file) + "|" + stamps.get(file.getPath()));
                }
                LISTED.put(digest, new WeakReference<HashMap<String, String>>(files));
            }
            return files;
        }
    }

    /** Says which references have been cleared. */
    static class Cleared implements java.util.function.Predicate {
        @Override
        public boolean test(Object reference) {
            return ((WeakReference) reference).get() == null;
        }
    }

    /**
     * What was added to files that were listed earlier: by index the digest of those, and the paths of the added ones.
     * In place of all that a file that is no longer what it was; an empty text if none is, as of other folders.
     *
     * @param earlier as `states` returned it, for indexes in the same places of an equal plan
     */
    public Object added(String numbers, ArrayList<Object[]> earlier) throws Exception {
        IdentityHashMap<Object, Object[]> found = new IdentityHashMap<Object, Object[]>();
        ArrayList<Object[]> now = states(numbers);
        ArrayList<PartitioningAwareFileIndex> listed = indexesOf(numbers);
        for (int i = 0; i < listed.size(); i++) {
            Object[] before = (Object[]) earlier.get(i);
            HashMap<String, String> files = (HashMap<String, String>) ((Object[]) now.get(i))[1];
            HashMap<String, String> former = (HashMap<String, String>) before[1];
            HashSet<String> added = new HashSet<String>(files.keySet());
            String changed = null;
            for (String path : former.keySet()) {
                if (former.get(path).equals(files.get(path))) {
                    added.remove(path);
                } else {
                    changed = path;
                }
            }
            if (changed != null) {
                return added.size() < files.size() ? changed : "";
            }
            Object[] known = (Object[]) found.get(listed.get(i));
            if (known != null && !known[0].equals(before[0])) {
                return "";  // the same files, read twice, were others in each place
            }
            found.put(listed.get(i), new Object[] {before[0], added});
        }
        return found;
    }

    /** How many files were added, by all that `added` returned. */
    public int count(List<IdentityHashMap<Object, Object[]>> found) {
        HashSet<String> all = new HashSet<String>();
        for (IdentityHashMap<Object, Object[]> added : found) {
            for (Object[] each : added.values()) {
                all.addAll((HashSet<String>) each[1]);
            }
        }
        return all.size();
    }

    /** By index the digest that was listed for it, as `states` returned it; an empty one where there were several. */
    public IdentityHashMap<Object, String> digests(String numbers, ArrayList<Object[]> states) {
        IdentityHashMap<Object, String> found = new IdentityHashMap<Object, String>();
        ArrayList<PartitioningAwareFileIndex> listed = indexesOf(numbers);
        for (int i = 0; i < listed.size(); i++) {
            String digest = (String) ((Object[]) states.get(i))[0];
            String known = (String) found.get(listed.get(i));
            found.put(listed.get(i), known == null || known.equals(digest) ? digest : "");
        }
        return found;
    }

    /**
     * What an index has listed: its roots, its files, and whether it leaves out some of what lies in the roots, as
     * pathGlobFilter asks for.
     */
    public Map<String, Object> facts(int number) {
        PartitioningAwareFileIndex index = (PartitioningAwareFileIndex) indexes.get(number);
        ArrayList<String> roots = new ArrayList<String>();
        boolean isFiltered = false;
        for (Path root : JavaConverters.asJavaIterable(index.rootPaths())) {
            roots.add(root.toString());
            isFiltered |= !index.matchPathPattern(new FileStatus(0L, false, 0, 0L, 0L, new Path(root, "any file")));
        }
        Map<String, Object> facts = new HashMap<String, Object>();
        facts.put("roots", roots);
        facts.put("files", lines(index));
        facts.put("filtered", Boolean.valueOf(isFiltered));
        return facts;
    }

    /** The first file of some indexes that is no longer what was listed; empty if all are. */
    public String changedFile(String numbers, Configuration conf) throws Exception {
        for (PartitioningAwareFileIndex index : indexesOf(numbers)) {
            String changed = changedSince(index, conf);
            if (changed.length() > 0) {
                return changed;
            }
        }
        return "";
    }

    /**
     * The first file of an index that is no longer what was listed; empty if all are. A file with a stamp is looked at
     * by itself, in one call of the system; to list a folder takes Hadoop a tenth of a millisecond for each file in it.
     */
    private String changedSince(PartitioningAwareFileIndex index, Configuration conf) throws Exception {
        HashMap<Path, HashMap<String, String>> now = new HashMap<Path, HashMap<String, String>>();
        HashMap<Path, String> stamps = (HashMap<Path, String>) of(index)[3];
        for (FileStatus file : JavaConverters.asJavaIterable(index.allFiles())) {
            String stamp = (String) stamps.get(file.getPath());
            if (stamp.length() > 0) {
                Map<String, Object> seen = seen(file.getPath());
                if (seen == null || !stamp.equals(stamp(seen)) || !isAsListed(file, seen)) {
                    return file.getPath().toString();
                }
                continue;
            }
            Path folder = file.getPath().getParent();
            HashMap<String, String> there = (HashMap<String, String>) now.get(folder);
            if (there == null) {
                there = new HashMap<String, String>();
                now.put(folder, there);
                try {
                    FileStatus[] listed = folder.getFileSystem(conf).listStatus(folder);
                    for (FileStatus one : listed) {
                        there.put(one.getPath().getName(), line(one));
                    }
                } catch (FileNotFoundException gone) {
                    return folder.toString();
                }
            }
            if (!line(file).equals(there.get(file.getPath().getName()))) {
                return file.getPath().toString();
            }
        }
        return "";
    }

    /** When a local file of some indexes was changed last, in milliseconds since 1970, as it was when it was stamped. */
    public long lastChange(Iterable<Integer> numbers) throws Exception {
        long last = 0L;
        for (Integer number : numbers) {
            HashMap<Path, String> stamps =
                (HashMap<Path, String>) of((PartitioningAwareFileIndex) indexes.get(number.intValue()))[3];
            for (String stamp : stamps.values()) {
                if (stamp.indexOf(' ') >= 0) {
                    last = Math.max(last, Long.parseLong(stamp.substring(stamp.indexOf(' ') + 1)) / 1000000L);
                }
            }
        }
        return last;
    }

    /**
     * As JSON the files below a path: path, length, modification time; null if there is nothing.
     *
     * Not by `FileSystem.listFiles`: it asks for the permissions of each file, for which Hadoop starts a process where it
     * has no native library. That took five milliseconds a file.
     */
    public static String listing(String root, Configuration conf) throws Exception {
        FileSystem files = new Path(root).getFileSystem(conf);
        ArrayDeque<Path> waiting = new ArrayDeque<Path>();
        waiting.add(new Path(root));
        ArrayList<String> found = new ArrayList<String>();
        try {
            while (!waiting.isEmpty()) {
                for (FileStatus one : files.listStatus((Path) waiting.remove())) {
                    if (one.isDirectory()) {
                        waiting.add(one.getPath());
                    } else {
                        found.add(line(one));
                    }
                }
            }
        } catch (FileNotFoundException gone) {
            return "null";
        }
        Collections.sort(found);
        return JSON.writeValueAsString(found);
    }

    private static ArrayList<String> lines(PartitioningAwareFileIndex index) {
        ArrayList<String> lines = new ArrayList<String>();
        for (FileStatus file : JavaConverters.asJavaIterable(index.allFiles())) {
            lines.add(line(file));
        }
        return lines;
    }

    /** The inode and the change time of a local file; empty for others, and where there are none (Windows). */
    private static String stamp(Path path) throws Exception {
        if (!"file".equals(path.toUri().getScheme())) {
            return "";
        }
        try {
            Map<String, Object> seen = seen(path);
            return seen == null ? "gone" : stamp(seen);
        } catch (UnsupportedOperationException other) {
            return "";
        }
    }

    private static String stamp(Map<String, Object> seen) {
        return seen.get("ino") + " " + ((FileTime) seen.get("ctime")).to(TimeUnit.NANOSECONDS);
    }

    /** What the system says of a local file; null if there is none. */
    private static Map<String, Object> seen(Path path) throws Exception {
        try {
            return Files.readAttributes(
                new File(path.toUri().getPath()).toPath(), "unix:ino,ctime,size,lastModifiedTime", new LinkOption[0]);
        } catch (NoSuchFileException gone) {
            return null;
        }
    }

    /** Whether a local file has the length and the modification time that were listed; Hadoop counts milliseconds. */
    private static boolean isAsListed(FileStatus file, Map<String, Object> seen) {
        return ((Long) seen.get("size")).longValue() == file.getLen()
            && ((FileTime) seen.get("lastModifiedTime")).toMillis() == file.getModificationTime();
    }

    private static String line(FileStatus file) {
        return file.getPath() + "|" + file.getLen() + "|" + file.getModificationTime();
    }
}
