package fencepost;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.OptionalInt;

/** Reaches private members of Kafka's classes, and bridges small differences between its releases. */
final class Reflect {
    private Reflect() { }

    /** Returns a field of the class or of a superclass, made accessible. */
    static Field field(Class<?> type, String name) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            try {
                Field field = at.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (NoSuchFieldException above) {
                continue;
            }
        }
        throw new IllegalStateException("Kafka's " + type.getName() + " has no field " + name);
    }

    static Object get(Field field, Object owner) {
        try {
            return field.get(owner);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Returns a public method without parameters. */
    static Method method(Class<?> type, String name) {
        try {
            Method method = type.getMethod(name);
            method.setAccessible(true);
            return method;
        } catch (NoSuchMethodException missing) {
            throw new IllegalStateException("Kafka's " + type.getName() + " has no method " + name);
        }
    }

    /** Returns the only public method of that name, whatever its parameters. */
    static Method named(Class<?> type, String name) {
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name)) {
                method.setAccessible(true);
                return method;
            }
        }
        throw new IllegalStateException("Kafka's " + type.getName() + " has no method " + name);
    }

    /** Returns the only public method of that name with so many parameters; null if this release has none. */
    static Method methodWith(Class<?> type, String name, int parameters) {
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == parameters) {
                method.setAccessible(true);
                return method;
            }
        }
        return null;
    }

    static Object call(Method method, Object owner, Object... arguments) {
        try {
            return method.invoke(owner, arguments);
        } catch (ReflectiveOperationException failed) {
            throw new IllegalStateException(method + " failed", failed.getCause() == null ? failed : failed.getCause());
        }
    }

    /**
     * Builds an object with the constructor whose parameters can all be filled from the parts, by their types. An
     * interface that no part implements belongs to a feature that no trace uses (share groups), and does nothing.
     */
    static Object construct(Class<?> type, Object... parts) {
        for (Constructor<?> constructor : type.getDeclaredConstructors()) {
            Object[] arguments = pick(constructor.getParameterTypes(), parts);
            if (arguments != null) {
                try {
                    constructor.setAccessible(true);
                    return constructor.newInstance(arguments);
                } catch (ReflectiveOperationException failed) {
                    throw new IllegalStateException("cannot build  " + type.getName(), failed);
                }
            }
        }
        throw new IllegalStateException("no constructor of " + type.getName() + " fits the known parts");
    }

    static Object made(Constructor<?> constructor, Object... arguments) {
        try {
            return constructor.newInstance(arguments);
        } catch (ReflectiveOperationException failed) {
            throw new IllegalStateException(constructor + " failed", failed);
        }
    }

    private static Object[] pick(Class<?>[] types, Object[] parts) {
        Object[] arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            for (Object part : parts) {
                if (types[i].isInstance(part)) {
                    arguments[i] = part;
                    break;
                }
            }
            if (arguments[i] == null && types[i].isInterface()) {
                arguments[i] = implement(types[i], (proxy, method, values) -> nothing(method));
            }
            if (arguments[i] == null) {
                return null;
            }
        }
        return arguments;
    }

    /** Calls the builder's "with" methods by name; names that this release lacks are ignored. */
    static void fill(Object builder, Map<String, Object> parts) {
        for (Method method : builder.getClass().getMethods()) {
            Object part = parts.get(method.getName());
            if (part != null && method.getParameterCount() == 1) {
                boolean optional = method.getParameterTypes()[0] == OptionalInt.class;
                method.setAccessible(true);
                call(method, builder, optional ? OptionalInt.of((Integer) part) : part);
            }
        }
    }

    static Class<?> find(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException missing) {
            return null;
        }
    }

    /** Implements an interface whose methods differ between releases. */
    static <T> T implement(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    /** Returns an empty result for a method. */
    static Object nothing(Method method) {
        Class<?> type = method.getReturnType();
        if (type == boolean.class) {
            return false;
        }
        if (type == int.class) {
            return 0;
        }
        return type == long.class ? (Object) 0L : null;
    }
}
