import type { DialPeer } from "../grpc/index.ts";
import type { HstsReach } from "../http/connections/browsers.ts";
import type { OpenIdSettings } from "../settings/openid.ts";
import type { Runtime } from "../runtime.ts";
import type { KeyRing, KeySource } from "../secrets/index.ts";
import type { Engine } from "../store/engine.ts";

/** The options that `main.ts` passes. */
export interface AssemblyOptions {
  readonly engine: Engine;
  readonly runtime: Runtime;
  readonly secrets: KeyRing;
  /** Where the keys come from; a setting when absent. */
  readonly keySource?: KeySource;
  /** How long all controllers seal with a new key before the rest is sealed anew; `KEY_SETTLE_MS` when absent. */
  readonly keySettleMs?: number;
  /** The id of this run of this controller. */
  readonly controllerId: string;
  readonly publicNames: readonly string[];
  /** The address at which hosts reach the HTTP interface. Absent: commands of job runs are told that it is not set. */
  readonly httpUrl?: string | undefined;
  /** None when absent. */
  readonly trustedProxies?: readonly string[];
  /** See `HttpSettings.hsts`. */
  readonly hsts?: HstsReach;
  /** See `HttpSettings.bodyMemoryMib`. */
  readonly bodyMemoryMib?: number;
  /** See `UserDependencies.passwordWords`. */
  readonly passwordWords?: readonly string[];
  /** This machine when absent. */
  readonly metricsReaders?: readonly string[];
  /** Networks that scripts reach besides public addresses; none when absent. */
  readonly outboundNetworks?: readonly string[];
  /** True if scripts may also reach public addresses. Default: true. */
  readonly outboundPublic?: boolean;
  readonly dataDir: string;
  /** Where the newest digests of the audit trail are kept outside the store; nowhere when absent. */
  readonly auditAnchorFile?: string;
  readonly version: string;
  /** The time zone of schedules that name none; UTC when absent. */
  readonly zone?: string;
  /** True if the first key that an SSH host shows is recorded. Default: true. */
  readonly sshTrustFirstKey?: boolean;
  /** The agent port, once it listens. */
  readonly agentPort: () => number;
  /** Where the HTTP interface is listened for, once it is; absent: hosts are not told where to join. */
  readonly listening?: () => { readonly host: string; readonly port: number };
  /** The built `worker.ts` and how many threads may run it; absent: every task takes the time of this thread. */
  readonly workers?: { readonly file: URL; readonly threads: number };
  /** The built `script-worker.ts`; absent: no script runs. */
  readonly scripts?: URL;
  /** Public keys by which licences are signed; none when absent. */
  readonly licenseKeys?: readonly string[];
  /** By which users of one tenant sign in; absent: by password only. */
  readonly openId?: OpenIdSettings | undefined;
  /** The way to other controllers: gRPC when absent. */
  readonly dialPeer?: DialPeer;
}
