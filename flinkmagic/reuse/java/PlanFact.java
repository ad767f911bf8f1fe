package flinkmagic.reuse;

import java.util.ArrayList;
import java.util.LinkedHashSet;

/** What is known about a plan: a digest, or why there is none. */
public class PlanFact {
    private static final int MOST_READS = 10000;

    public String digest;
    public String reason;
    public boolean portable = true;

    /** Whether all that the digest was made from can be seen in files and settings, also days later. */
    public boolean durable = true;

    /** Whether Spark may choose, each time, which rows there are of several. */
    public boolean chooses = false;

    /** Whether its values depend on the order of rows: plain Spark may give each of several orders. */
    public boolean byOrder = false;

    /** Whether Python functions of the user's are run. */
    public boolean runsPython = false;

    /** Whether its run fills a cache of the user's. */
    public boolean fillsCache = false;

    public final LinkedHashSet<Integer> files = new LinkedHashSet<Integer>();

    /** The file indexes in the order in which they stand in the plan, each as often as it does there. */
    public final ArrayList<Integer> reads = new ArrayList<Integer>();

    public void refuse(String why) {
        if (reason == null) {
            reason = why;
        }
    }

    public void merge(PlanFact part) {
        portable = portable && part.portable;
        durable = durable && part.durable;
        runsPython = runsPython || part.runsPython;
        chooses = chooses || part.chooses;
        byOrder = byOrder || part.byOrder;
        fillsCache = fillsCache || part.fillsCache;
        files.addAll(part.files);
        reads.addAll(part.reads);
        if (reads.size() > MOST_READS) {
            refuse("its plan reads files in too many places");
        }
        if (part.reason != null) {
            refuse(part.reason);
        }
    }
}
