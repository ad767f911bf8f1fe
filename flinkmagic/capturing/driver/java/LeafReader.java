package flinkmagic.capturing.driver;

import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import flinkmagic.jvm.Reflect;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.JavaConverters;

/**
 * Reads what the leaves of analysed plans are, and which files they read. Executes nothing.
 */
public class LeafReader {
    /**
     * The leaves of an analysed plan and of its subqueries, as deflated JSON: for each its class and, if it reads files
     * that belong to no table, the folders, and whether its DataFrame listed the files.
     */
    public byte[] leaves(LogicalPlan plan) throws Exception {
        List<Map> facts = new ArrayList<Map>();
        for (Object leaf : leavesOf(plan)) {
            Map<String, Object> fact = new LinkedHashMap<String, Object>();
            fact.put("class", leaf.getClass().getSimpleName());
            if (leaf instanceof LogicalRelation) {
                addFiles((LogicalRelation) leaf, fact);
            }
            facts.add(fact);
        }
        return Reflect.deflated(facts);
    }

    /** One of the leaves, by its place among them. */
    public Object leaf(LogicalPlan plan, int place) {
        return leavesOf(plan).get(place);
    }

    /** A number for each cache that a plan reads, separated by blanks. */
    public String cachedRelations(LogicalPlan plan) {
        StringBuilder found = new StringBuilder();
        for (Object leaf : leavesOf(plan)) {
            if (leaf instanceof InMemoryRelation) {
                found.append(System.identityHashCode(((InMemoryRelation) leaf).cacheBuilder())).append(' ');
            }
        }
        return found.toString();
    }

    private static void addFiles(LogicalRelation leaf, Map facts) {
        if (leaf.catalogTable().isDefined() || !(leaf.relation() instanceof HadoopFsRelation)) {
            return;
        }
        FileIndex index = ((HadoopFsRelation) leaf.relation()).location();
        facts.put("listed", Boolean.valueOf(index.getClass().getSimpleName().equals("InMemoryFileIndex")));
        List linked = new ArrayList();
        if (index instanceof InMemoryFileIndex) {
            addLinked((InMemoryFileIndex) index, linked);
            facts.put("flat", Boolean.valueOf(isFlat((InMemoryFileIndex) index)));
        }
        List<String> paths = new ArrayList<String>();
        for (Path root : JavaConverters.asJavaIterable(index.rootPaths())) {
            paths.add(root.toString());
        }
        facts.put("paths", paths);
        facts.put("linked", linked);
    }

    /** Whether all listed files lie directly in the folders that were named, or were named themselves. */
    private static boolean isFlat(InMemoryFileIndex index) {
        Set<String> named = named(index);
        for (FileStatus listed : JavaConverters.asJavaIterable(index.allFiles())) {
            Path file = listed.getPath();
            if (!named.contains(file.getParent().toUri().getPath()) && !named.contains(file.toUri().getPath())) {
                return false;
            }
        }
        return true;
    }

    /** Where symbolic links among the listed files and folders lead, if that is outside the folders that were named. */
    private static void addLinked(InMemoryFileIndex index, List paths) {
        List<java.nio.file.Path> roots = new ArrayList<java.nio.file.Path>();
        for (Path root : JavaConverters.asJavaIterable(index.rootPaths())) {
            roots.add(real(root));
        }
        Set<String> named = named(index);
        HashSet folders = new HashSet();
        for (FileStatus listed : JavaConverters.asJavaIterable(index.allFiles())) {
            Path file = listed.getPath();
            if (!"file".equals(file.toUri().getScheme())) {
                return;
            }
            // A file that was named itself says nothing about its folder.
            if (named.contains(file.toUri().getPath())) {
                continue;
            }
            if (folders.add(file.getParent())) {
                addUnlessBelow(roots, file.getParent(), paths);
            }
            if (Files.isSymbolicLink(local(file))) {
                addUnlessBelow(roots, file, paths);
            }
        }
    }

    private static void addUnlessBelow(List<java.nio.file.Path> roots, Path place, List paths) {
        java.nio.file.Path real = real(place);
        for (java.nio.file.Path root : roots) {
            if (real.startsWith(root)) {
                return;
            }
        }
        paths.add(place.toString());
    }

    private static java.nio.file.Path local(Path path) {
        return Paths.get(path.toUri().getPath(), new String[0]);
    }

    private static java.nio.file.Path real(Path path) {
        try {
            return local(path).toRealPath(new LinkOption[0]);
        } catch (java.io.IOException gone) {
            return local(path);
        }
    }

    /** The paths that a reader was given, without scheme and authority. */
    public static Set<String> named(FileIndex index) {
        Set<String> found = new HashSet<String>();
        for (Path root : JavaConverters.asJavaIterable(index.rootPaths())) {
            found.add(root.toUri().getPath());
        }
        return found;
    }

    /** The leaves of an analysed plan and of its subqueries. */
    public static List<Object> leavesOf(LogicalPlan plan) {
        List<Object> leaves = new ArrayList<Object>(JavaConverters.seqAsJavaList(plan.collectLeaves()));
        for (Object subquery : JavaConverters.asJavaIterable(((QueryPlan) plan).subqueriesAll())) {
            leaves.addAll(JavaConverters.seqAsJavaList(((LogicalPlan) subquery).collectLeaves()));
        }
        return leaves;
    }
}
