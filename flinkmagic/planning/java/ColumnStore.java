package flinkmagic.planning;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;

import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;

/** By the keys of text sources: the columns of them that are kept, and what queries have read from their files. */
public class ColumnStore {
    private final HashMap kept = new HashMap();
    private final HashMap seen = new HashMap();

    /** What queries read from now on, once it is all there. */
    public synchronized void keep(String key, KeptColumns filled) {
        kept.put(key, filled);
    }

    /** What is kept of a source; null if that is nothing, or if it is not all there. */
    public synchronized KeptColumns of(String key) {
        KeptColumns one = (KeptColumns) kept.get(key);
        return one != null && one.relation().cacheBuilder().isCachedColumnBuffersLoaded() ? one : null;
    }

    /** Whether columns of a source are kept, and all there. */
    public boolean isKept(String key) {
        return of(key) != null;
    }

    /** Forget what is kept of a source, if it is held by this builder. */
    public synchronized void forget(String key, CachedRDDBuilder builder) {
        KeptColumns one = (KeptColumns) kept.get(key);
        if (one != null && one.relation().cacheBuilder() == builder) {
            kept.remove(key);
        }
    }

    /** Note that columns of a source were read, or computed, from its files. */
    public synchronized void see(String key, List columns) {
        if (!seen.containsKey(key)) {
            seen.put(key, new HashSet());
        }
        ((HashSet) seen.get(key)).addAll(columns);
    }

    /** Whether one of some columns was. */
    public synchronized boolean isSeen(String key, List columns) {
        return seen.containsKey(key) && !Collections.disjoint((HashSet) seen.get(key), columns);
    }
}
