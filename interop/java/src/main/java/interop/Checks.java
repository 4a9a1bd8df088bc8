package interop;

import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;

/** Checks with a name. Each prints one line; the program fails if one of them fails. */
final class Checks {
    static final String NAMESPACE = "clients";

    /** A CustomResourceDefinition with the subresources status and scale. */
    static final String WIDGET_CRD =
            """
            apiVersion: apiextensions.k8s.io/v1
            kind: CustomResourceDefinition
            metadata:
              name: widgets.interop.example
            spec:
              group: interop.example
              scope: Namespaced
              names: {plural: widgets, singular: widget, kind: Widget}
              versions:
              - name: v1
                served: true
                storage: true
                subresources:
                  status: {}
                  scale:
                    specReplicasPath: .spec.replicas
                    statusReplicasPath: .status.replicas
                schema:
                  openAPIV3Schema:
                    type: object
                    properties:
                      spec:
                        type: object
                        required: [size]
                        properties:
                          size: {type: integer, minimum: 1}
                          replicas: {type: integer}
                      status:
                        type: object
                        properties:
                          replicas: {type: integer}
            """;

    private static final long TIMEOUT_MILLIS = 20_000;

    private final String program;
    private int passed;
    private int failed;

    Checks(String program) {
        this.program = program;
    }

    interface Check {
        void run() throws Exception;
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    void run(String name, Check check) {
        try {
            check.run();
            passed += 1;
            System.out.printf("ok     %s: %s%n", program, name);
        } catch (Exception | AssertionError error) {
            failed += 1;
            System.out.printf("FAILED %s: %s%n", program, name);
            error.printStackTrace(System.out);
        }
    }

    /** Prints the totals and ends the process with 1 if a check failed. */
    void exit() {
        System.out.printf("%s: %d checks passed, %d failed%n", program, passed, failed);
        System.exit(failed > 0 ? 1 : 0);
    }

    static void equal(Object actual, Object expected) {
        if (!Objects.equals(actual, expected)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
    }

    static void contains(String text, String part) {
        if (text == null || !text.contains(part)) {
            throw new AssertionError("no " + part + " in " + text);
        }
    }

    /** Waits until the condition holds. */
    static void eventually(Condition condition, Supplier<String> what) throws Exception {
        long deadline = System.currentTimeMillis() + TIMEOUT_MILLIS;
        while (!condition.holds()) {
            if (System.currentTimeMillis() > deadline) {
                throw new AssertionError("not within " + TIMEOUT_MILLIS + " ms: " + what.get());
            }
            Thread.sleep(20);
        }
    }

    /** The name of an object for a propagation policy. */
    static String named(String prefix, String policy) {
        return prefix + "-" + policy.toLowerCase(Locale.ROOT);
    }

    /** The value of a key, or null without a map. */
    static String value(Map<String, String> data, String key) {
        return data == null ? null : data.get(key);
    }
}
