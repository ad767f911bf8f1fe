package tests;

import java.lang.reflect.Field;

import py4j.reflection.LRUCache;
import py4j.reflection.ReflectionEngine;

/**
 * Lets py4j remember all methods and constructors that the calling thread has looked up.
 *
 * It keeps the last hundred of each thread; a cell of a notebook needs more, and to look one up takes a millisecond
 * where a class has many.
 */
public class RememberedMethods {
    public RememberedMethods() throws ReflectiveOperationException {
        Field holder = ReflectionEngine.class.getDeclaredField("cacheHolder");
        holder.setAccessible(true);
        Object cache = ((ThreadLocal) holder.get(null)).get();
        Field size = LRUCache.class.getDeclaredField("cacheSize");
        size.setAccessible(true);
        size.setInt(cache, Integer.MAX_VALUE);
    }
}
