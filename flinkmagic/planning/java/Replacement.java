package flinkmagic.planning;

import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Puts others in the place of some expressions, as Catalyst's `transform` asks for it. */
public class Replacement extends AbstractPartialFunction {
    private final Rule rule;

    public Replacement(Rule rule) {
        this.rule = rule;
    }

    @Override
    public boolean isDefinedAt(Object expression) {
        return rule.of(expression) != null;
    }

    @Override
    public Object applyOrElse(Object expression, Function1 otherwise) {
        Object other = rule.of(expression);
        return other == null ? otherwise.apply(expression) : other;
    }

    /** Says what stands for an expression from now on; null if it stays. (Janino extends no class of this kind twice.) */
    public interface Rule {
        Object of(Object expression);
    }
}
