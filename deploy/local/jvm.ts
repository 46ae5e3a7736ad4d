/** What Cassandra 5 needs of the JVM beyond its defaults, as its own start script passes it. */
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

/** Takes about half the processor time until a node answers, for less speed afterwards. */
const STARTS_SOON = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
const RUNS_LONG = ["-XX:+UseG1GC"];

/**
 * Definitions of tables, and notes of what was emptied, stay in memory until they are written with everything else. A
 * node that is started again may not know its tables.
 */
const NEVER_STARTS_AGAIN = ["-Dcassandra.test.flush_local_schema_changes=false", "-Dcassandra.unsafesystem=true"];

export interface JvmOptions {
  /** True for a node that lives for minutes, as those of tests do. */
  readonly startsSoon: boolean;
  /** True for a node whose data end with it. */
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
    // Without a file here every JVM of one user writes to the same place in /tmp.
    "-XX:+PerfDisableSharedMem",
    `-Dcassandra.config=file://${options.configFile}`,
    `-Dcassandra.storagedir=${options.dataDir}`,
    `-Dlogback.configurationFile=file://${options.logbackFile}`,
    // A node on loopback has no other to wait for.
    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
    "-Dcassandra.ring_delay_ms=1000",
    "-Dcassandra.superuser_setup_delay_ms=0",
    // A node that was away while tables were made asks the others for them: by its own defaults a minute after it is back, and
    // another minute later when that fails. Nobody can make tables meanwhile.
    "-Dcassandra.migration_delay_ms=1000",
    "-Dcassandra.schema_pull_interval_ms=5000",
  ];
}

/** Also what its tools need. */
export function openedPackages(): string[] {
  return Object.entries(OPENED_PACKAGES).flatMap(([module, packages]) =>
    packages.flatMap((name) => [
      `--add-opens=${module}/${name}=ALL-UNNAMED`,
      `--add-exports=${module}/${name}=ALL-UNNAMED`,
    ]),
  );
}
