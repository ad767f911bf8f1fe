package flinkmagic.planning;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.storage.StorageLevel;

/** A query that is planned: what it may read of kept columns of its text sources, and what of these it may keep. */
public class ColumnPlanning {
    private final ColumnStore store;
    private final IdentityHashMap<Object, Source> sources = new IdentityHashMap<Object, Source>();
    private SessionState state;
    private StorageLevel level;
    private boolean keeps;
    private Scans scans;

    public ColumnPlanning(ColumnStore store) {
        this.store = store;
    }

    /**
     * Make a source known, by the key of its rows.
     *
     * @param name what is kept of it is called
     * @param bytes the length of its files
     * @param share how much of it, as a share of all columns of all rows, may be parsed and kept beside the query
     * @param passes how often as much as all its columns may be stored, or computed, beside the query
     */
    public Source know(LogicalRelation leaf, String key, String name, long bytes, double share, double passes) {
        Source source = new Source(this, key, name, bytes, share, passes);
        sources.put(leaf.relation(), source);
        return source;
    }

    /** On which session it is planned, where columns are kept, and whether any may be kept that are not yet. */
    public void on(SessionState state, StorageLevel level, boolean keeps) {
        this.state = state;
        this.level = level;
        this.keeps = keeps;
    }

    /** Where the rows of scans come from below what is kept of the query. */
    public void scanBy(Scans scans) {
        this.scans = scans;
    }

    /** What is known of a source, by its ``BaseRelation``; null if that is nothing. */
    public Source sourceOf(Object relation) {
        return (Source) sources.get(relation);
    }

    /** Where columns are kept; null before anything is planned. */
    public StorageLevel level() {
        return level;
    }

    /** The relations whose rows it keeps or reads. */
    public InMemoryRelation[] relations() {
        ArrayList<InMemoryRelation> found = new ArrayList<InMemoryRelation>();
        for (Source source : sources.values()) {
            for (KeptColumns columns : source.columns()) {
                found.add(columns.relation());
            }
        }
        return (InMemoryRelation[]) found.toArray(new InMemoryRelation[0]);
    }

    /** Reads scans of files in another way than Spark does. */
    public interface Scans {
        /** Let the scans of a plan that has not run be read so. */
        void readIn(SparkPlan plan) throws Exception;
    }

    /** A source of the query. */
    public static class Source {
        /** The key of its rows. */
        public final String key;
        /** What is kept of it is called so. */
        public final String name;
        /** The length of its files. */
        public final long bytes;
        private final ColumnPlanning planning;
        private final double share;
        private final double passes;
        private final ArrayList<KeptColumns> used = new ArrayList<KeptColumns>();
        private final ArrayList<Object> parsed = new ArrayList<Object>();
        private KeptColumns filling;
        private int computedRead = -1;
        private double cost = 0.0;
        private boolean isReadWhole = false;
        private boolean mayNotKeep = false;

        Source(ColumnPlanning planning, String key, String name, long bytes, double share, double passes) {
            this.planning = planning;
            this.key = key;
            this.name = name;
            this.bytes = bytes;
            this.share = share;
            this.passes = passes;
        }

        /** What the query may read: what it keeps itself first. */
        public ArrayList<KeptColumns> known() {
            ArrayList<KeptColumns> all = planning.store.of(key);
            if (filling != null) {
                all.add(0, filling);
            }
            return all;
        }

        /** What the query keeps, or reads. */
        public ArrayList<KeptColumns> columns() {
            ArrayList<KeptColumns> all = new ArrayList<KeptColumns>(used);
            if (filling != null) {
                all.add(filling);
            }
            return all;
        }

        /** Whether the query keeps columns of it. */
        public boolean isKept() {
            return filling != null;
        }

        /** What the query keeps of it; null if that is nothing. */
        public KeptColumns filling() {
            return filling;
        }

        /** How much, as a share of all columns of all rows, may be parsed and kept beside the query. */
        public double share() {
            return mayNotKeep ? 0.0 : share;
        }

        /** Note that a part of the query reads it that may keep nothing: then the query keeps nothing of it. */
        public void noteReader() {
            mayNotKeep = mayNotKeep || !planning.keeps;
        }

        /**
         * Has columns kept while the query reads them, if that is allowed and one of them was read before.
         *
         * @param lacking the computed ones that are not kept already
         * @param ofAllRows how many of them the query computes of all rows, and not only of those that pass a filter
         */
        public boolean keep(KeptColumns columns, List lacking, int ofAllRows) throws Exception {
            cost = columns.share() + Math.max(0, columns.computed().size() - ofAllRows);
            if (mayNotKeep || cost > passes || !planning.store.isSeen(key, lacking)) {
                parsed.addAll(lacking);
                return false;
            }
            columns.plan(planning.state, planning.level, name);
            if (planning.scans != null) {
                planning.scans.readIn(columns.relation().cacheBuilder().cachedPlan());
            }
            filling = columns;
            return true;
        }

        /** What it costs to keep what the query keeps, in passes over the source. */
        public double cost() {
            return cost;
        }

        /** Note that the query reads columns that are kept already, so many of which are computed ones. */
        public void read(KeptColumns columns, int computed) {
            used.add(columns);
            computedRead = Math.max(computedRead, computed);
        }

        /** Note that the query surely reads all of it. */
        public void readWhole() {
            isReadWhole = true;
        }

        /** Whether the query reads columns that are kept already. */
        public boolean isRead() {
            return computedRead >= 0;
        }

        /** How many computed columns the query reads that are kept already. */
        public int computedRead() {
            return Math.max(0, computedRead);
        }

        /** Whether the query surely reads all of it; null if it was not planned here. */
        public Boolean isReadWhole() {
            return planning.state == null ? null : Boolean.valueOf(isReadWhole);
        }

        /** Note what the query has read of it from its files. */
        public void note() {
            planning.store.see(key, parsed);
        }

        /** Let later queries read what it has kept of it; returns the names of what they need no more. */
        public String hand() {
            return planning.store.keep(key, filling);
        }
    }
}
