package flinkmagic.planning;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;

import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;

/** By the keys of text sources: the columns of them that are kept, and what queries have read from their files. */
public class ColumnStore {
    private final HashMap<String, ArrayList<KeptColumns>> kept = new HashMap<String, ArrayList<KeptColumns>>();
    private final HashMap<String, HashSet<Object>> seen = new HashMap<String, HashSet<Object>>();

    /**
     * What queries read from now on, once it is all there.
     *
     * @return the names of what else is kept of the source and is held by it, too, with blanks between them
     */
    public synchronized String keep(String key, KeptColumns filled) {
        ArrayList<KeptColumns> all = of(key);
        StringBuilder names = new StringBuilder();
        for (KeptColumns one : all) {
            if (filled.hold(one) && !one.name().equals(filled.name())) {
                names.append(one.name()).append(' ');
            }
        }
        all.add(filled);
        kept.put(key, all);
        return names.toString();
    }

    /** What is kept of a source, and all there: for each query all columns that it reads together. */
    public synchronized ArrayList<KeptColumns> of(String key) {
        ArrayList<KeptColumns> found = new ArrayList<KeptColumns>();
        if (kept.containsKey(key)) {
            for (KeptColumns one : (ArrayList<KeptColumns>) kept.get(key)) {
                if (one.relation().cacheBuilder().isCachedColumnBuffersLoaded()) {
                    found.add(one);
                }
            }
        }
        return found;
    }

    /** Whether columns of a source are kept, and all there. */
    public boolean isKept(String key) {
        return !of(key).isEmpty();
    }

    /** Forget what is kept of a source, if it is held by this builder. */
    public synchronized void forget(String key, CachedRDDBuilder builder) {
        ArrayList<KeptColumns> all = (ArrayList<KeptColumns>) kept.get(key);
        for (int i = all == null ? -1 : all.size() - 1; i >= 0; i--) {
            if (((KeptColumns) all.get(i)).relation().cacheBuilder() == builder) {
                all.remove(i);
            }
        }
    }

    /** Note that columns of a source were read, or computed, from its files. */
    public synchronized void see(String key, List columns) {
        if (!seen.containsKey(key)) {
            seen.put(key, new HashSet<Object>());
        }
        ((HashSet) seen.get(key)).addAll(columns);
    }

    /** Whether one of some columns was. */
    public synchronized boolean isSeen(String key, List columns) {
        return seen.containsKey(key) && !Collections.disjoint((HashSet) seen.get(key), columns);
    }
}
