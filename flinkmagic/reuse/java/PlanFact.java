package flinkmagic.reuse;

import java.util.LinkedHashSet;

/** What is known about a plan: a digest, or why there is none. */
public class PlanFact {
    public String digest;
    public String reason;
    public boolean portable = true;
    public final LinkedHashSet<Integer> files = new LinkedHashSet<Integer>();

    public void refuse(String why) {
        if (reason == null) {
            reason = why;
        }
    }

    public void merge(PlanFact part) {
        portable = portable && part.portable;
        files.addAll(part.files);
        if (part.reason != null) {
            refuse(part.reason);
        }
    }
}
