import { Type, type Static } from "typebox";
import { JOIN_TOKEN_MAX_MINUTES } from "../limits.ts";
import { HOST_NAME } from "./documented.ts";

/** Schemas of `/host` and `/agent`. */

const Name = Type.String({ minLength: 1, maxLength: 255 });
/** Name of a host that need not exist. */
const NewName = Type.String({ minLength: 1, maxLength: 255, documented: HOST_NAME });
const Text = (maxLength: number) => Type.String({ maxLength });
const Flag = Type.Integer({ minimum: 0, maximum: 1 });

export const HostList = Type.Object({
  tag: Type.Optional(Text(500)),
  /** True: hosts that are online; false: the others. */
  status: Type.Optional(Type.Boolean()),
});
export type HostList = Static<typeof HostList>;

export const HostName = Type.Object({ name: Name });

/**
 * Absent members stay unchanged. Members of `config` are merged; `null` removes one. A secret sent in its masked form
 * (`******`) stays unchanged as well.
 */
export const HostInput = Type.Object({
  host: NewName,
  iplist: Type.Optional(Type.Array(Text(100), { maxItems: 64 })),
  domain: Type.Optional(Text(255)),
  hostgroups: Type.Optional(Type.Array(Text(255), { maxItems: 500 })),
  isagent: Type.Optional(Flag),
  isextagent: Type.Optional(Flag),
  iszabbix: Type.Optional(Flag),
  sert: Type.Optional(Text(65_536)),
  secret: Type.Optional(Type.Union([Text(65_536), Type.Null()])),
  /**
   * SHA-256 fingerprint of the host's SSH key, `SHA256:…`. Absent: the first connection records it. Empty: removes it.
   */
  sshkey: Type.Optional(Type.String({ pattern: "^(SHA256:[A-Za-z0-9+/]{43})?$" })),
  tags: Type.Optional(Type.Array(Text(500), { maxItems: 500 })),
  /**
   * SSH needs `username`, `password` or `privatekey` (with `passphrase`), and `port`; also `address`, if neither
   * `iplist` nor the name reaches the host. `time_zone`: zone for times without a zone in the host's records, unless
   * the rule or the policy names one.
   */
  config: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
export type HostInput = Static<typeof HostInput>;

/** A host as users may see it: secrets are omitted or masked. */
export const HostView = Type.Object({
  id: Type.String(),
  class: Type.String(),
  host: Type.String(),
  iplist: Type.Array(Type.String()),
  domain: Type.String(),
  hostgroups: Type.Array(Type.String()),
  isagent: Type.Integer(),
  isextagent: Type.Integer(),
  iszabbix: Type.Integer(),
  sert: Type.String(),
  sshkey: Type.String(),
  config: Type.Record(Type.String(), Type.String()),
  /** Maps a depot name to the JSON text of `[{version}]`. */
  depot: Type.Record(Type.String(), Type.String()),
  /** The agent's state for each policy wanted on the host: `running`, `wanted`, or `failed: ` and the reason. */
  policies: Type.Record(Type.String(), Type.String()),
  confs: Type.Record(Type.String(), Type.String(), {
    description: "SHA-256 of the conf that the agent has in place, by policy",
  }),
  status: Type.Union([Type.Literal("online"), Type.Literal("offline")]),
  tags: Type.Array(Type.String()),
  revision: Type.String({
    description: "Revision of the definition; facts and states that odp notes leave it as it is",
  }),
});
export type HostView = Static<typeof HostView>;

export const TokenInput = Type.Object({
  /** The host that may enrol with the token. Absent: any host without an enrolment. */
  host: Type.Optional(NewName),
  minutes: Type.Optional(
    Type.Integer({ minimum: 1, maximum: JOIN_TOKEN_MAX_MINUTES, description: "minutes that it holds" }),
  ),
});
export type TokenInput = Static<typeof TokenInput>;

export const TokenAnswer = Type.Object({
  token: Type.String(),
  id: Type.String({ description: "names the token in lists, and revokes it" }),
  expires: Type.Integer({ description: "milliseconds since 1970" }),
  /** Base URL of this controller for hosts. */
  controller: Type.Optional(Type.String()),
});

export const TokenView = Type.Object({
  id: Type.String(),
  host: Type.String({ description: "the host that may enrol; empty: any host without an enrolment" }),
  user: Type.String({ description: "the user who made it; empty: an earlier version of odp" }),
  expires: Type.Integer({ description: "milliseconds since 1970" }),
  used: Type.Integer({ description: "milliseconds since 1970; 0: not used" }),
  usedBy: Type.String({ description: "the host that enrolled with it; empty: none" }),
});
export type TokenView = Static<typeof TokenView>;

export const TokenId = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) });

export const EnrolInput = Type.Object({
  id: Text(200),
  csr: Text(20_000),
  proof: Text(200),
  named: Type.Optional(
    Type.Boolean({ description: "true: the agent was given its name, so a token for another host is refused" }),
  ),
});

export const EnrolOutput = Type.Object({
  certificate: Type.String(),
  authorities: Type.Array(Type.String()),
  host: Type.String(),
  tenant: Type.String(),
  agentPort: Type.Integer(),
  controllers: Type.Array(Type.String()),
  proof: Type.String(),
});
