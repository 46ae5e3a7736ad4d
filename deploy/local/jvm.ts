/** JVM packages that Cassandra 5 must open, as in its own start script. */
const OPENED_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "java.base": [
    "java.io",
    "java.lang",
    "java.lang.ref",
    "java.lang.reflect",
    "java.math",
    "java.net",
    "java.nio",
    "java.nio.charset",
    "java.nio.file.spi",
    "java.time",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.loader",
    "jdk.internal.math",
    "jdk.internal.misc",
    "jdk.internal.module",
    "jdk.internal.ref",
    "jdk.internal.reflect",
    "jdk.internal.util.jar",
    "sun.nio.ch",
  ],
  "java.logging": ["java.util.logging"],
  "java.management.rmi": ["javax.management.remote.rmi"],
  "java.rmi": ["sun.rmi.registry", "sun.rmi.server", "sun.rmi.transport", "sun.rmi.transport.tcp"],
  "java.sql": ["java.sql"],
  "jdk.management": ["com.sun.management.internal"],
};

/** Halves the processor time until a node answers; it is slower afterwards. */
const STARTS_SOON = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
const RUNS_LONG = ["-XX:+UseG1GC"];

/**
 * Schema changes and records of truncations stay in memory until a normal flush. A restarted node may not know its
 * tables.
 */
const NEVER_STARTS_AGAIN = ["-Dcassandra.test.flush_local_schema_changes=false", "-Dcassandra.unsafesystem=true"];

export interface JvmOptions {
  /** True for a node that lives for minutes, such as those of tests. */
  readonly startsSoon: boolean;
  /** True for a node whose data is not needed after it ends. */
  readonly disposable: boolean;
  readonly heapMiB: number;
  readonly dataDir: string;
  readonly configFile: string;
  readonly logbackFile: string;
}

export function jvmFlags(options: JvmOptions): string[] {
  return [
    ...openedPackages(),
    "-Djdk.attach.allowAttachSelf=true",
    ...(options.startsSoon ? STARTS_SOON : RUNS_LONG),
    ...(options.disposable ? NEVER_STARTS_AGAIN : []),
    `-Xms${options.heapMiB}m`,
    `-Xmx${options.heapMiB}m`,
    "-XX:+ExitOnOutOfMemoryError",
    `-XX:ErrorFile=${options.dataDir}/hs_err.log`,
    // Otherwise all JVMs of a user write to the same place in /tmp.
    "-XX:+PerfDisableSharedMem",
    `-Dcassandra.config=file://${options.configFile}`,
    `-Dcassandra.storagedir=${options.dataDir}`,
    `-Dlogback.configurationFile=file://${options.logbackFile}`,
    // A node on loopback has no other node to wait for.
    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
    "-Dcassandra.ring_delay_ms=1000",
    "-Dcassandra.superuser_setup_delay_ms=0",
    // A node that missed the creation of tables asks the others for them. By default it does so a minute after its
    // return, and after a failure another minute later. In the meantime no tables can be created.
    "-Dcassandra.migration_delay_ms=1000",
    "-Dcassandra.schema_pull_interval_ms=5000",
  ];
}

/** Flags that open these packages; Cassandra's tools need them, too. */
export function openedPackages(): string[] {
  return Object.entries(OPENED_PACKAGES).flatMap(([module, packages]) =>
    packages.flatMap((name) => [
      `--add-opens=${module}/${name}=ALL-UNNAMED`,
      `--add-exports=${module}/${name}=ALL-UNNAMED`,
    ]),
  );
}
