import type { HistoryBounds } from "../areas/files/index.ts";
import type { DialPeer } from "../grpc/index.ts";
import type { HstsReach } from "../http/connections/browsers.ts";
import type { Manual } from "../http/manual/files.ts";
import type { CallLog } from "../log/calls.ts";
import type { OpenIdSettings } from "../settings/openid.ts";
import type { ShownSetting } from "../settings/shown.ts";
import type { Runtime } from "../runtime.ts";
import type { KeyRing, KeySource } from "../secrets/index.ts";
import type { Engine } from "../store/engine.ts";

/** The options that `main.ts` passes. */
export interface AssemblyOptions {
  readonly engine: Engine;
  readonly runtime: Runtime;
  /** See `HttpParts.callLog`. */
  readonly callLog?: CallLog;
  readonly secrets: KeyRing;
  /** Source of the keys. Absent: the text of a setting. */
  readonly keySource?: KeySource;
  /** Time for which all controllers seal with a new key before the rest is resealed. Default: `KEY_SETTLE_MS`. */
  readonly keySettleMs?: number;
  /** The id of this run of this controller. */
  readonly controllerId: string;
  readonly publicNames: readonly string[];
  /**
   * The address at which hosts reach the HTTP interface. Absent: commands of job runs get the message that it is not
   * set.
   */
  readonly httpUrl?: string | undefined;
  /** Absent: none. */
  readonly trustedProxies?: readonly string[];
  /** See `HttpSettings.hsts`. */
  readonly hsts?: HstsReach;
  /** Absent: contents of replaced and removed files are not kept. */
  readonly fileHistory?: HistoryBounds | undefined;
  /** See `HttpSettings.bodyMemoryMib`. */
  readonly bodyMemoryMib?: number;
  /** See `UserDependencies.passwordWords`. */
  readonly passwordWords?: readonly string[];
  /** Absent: this machine only. */
  readonly metricsReaders?: readonly string[];
  /** Networks that scripts reach besides public addresses; none when absent. */
  readonly outboundNetworks?: readonly string[];
  /** True if scripts may also reach public addresses. Default: true. */
  readonly outboundPublic?: boolean;
  /** Bounds of removals from policies by targets that need no confirmation. Absent: 20 percent and 5 hosts. */
  readonly targetHold?: { readonly percent: number; readonly hosts: number };
  /** Settings that a call answers, without secrets; none if absent. */
  readonly shownSettings?: readonly ShownSetting[];
  readonly dataDir: string;
  /** File outside the store that keeps the newest digests of the audit trail. Absent: none is kept. */
  readonly auditAnchorFile?: string;
  readonly version: string;
  /** The time zone of schedules that name none; UTC when absent. */
  readonly zone?: string;
  /** True if the first key that an SSH host shows is recorded. Default: true. */
  readonly sshTrustFirstKey?: boolean;
  /** The agent port, once it listens. */
  readonly agentPort: () => number;
  /** Address of the HTTP interface, once it listens. Absent: hosts are not told where to join. */
  readonly listening?: () => { readonly host: string; readonly port: number };
  /** The built `worker.ts`, and the number of threads for it. Absent: all tasks run on the main thread. */
  readonly workers?: { readonly file: URL; readonly threads: number };
  /** See `HttpParts.manual`. */
  readonly manual?: Manual;
  /** The built `script-worker.ts`; absent: no script runs. */
  readonly scripts?: URL;
  /** Public keys that verify the signatures of licences; none if absent. */
  readonly licenseKeys?: readonly string[];
  /** OpenID provider for the users of one tenant. Absent: they sign in by password only. */
  readonly openId?: OpenIdSettings | undefined;
  /** Connects to another controller. Absent: by gRPC. */
  readonly dialPeer?: DialPeer;
}
