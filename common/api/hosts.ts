import { Type, type Static } from "typebox";
import { JOIN_TOKEN_MAX_MINUTES } from "../limits.ts";
import { HOST_NAME } from "./documented.ts";

/** Schemas of `/host` and `/agent`. */

const Name = Type.String({ minLength: 1, maxLength: 255, description: "Name of the host" });
const NewName = Type.String({
  minLength: 1,
  maxLength: 255,
  documented: HOST_NAME,
  description: "Name of the host; it need not exist yet",
});
const Text = (maxLength: number) => Type.String({ maxLength });

export const HostList = Type.Object({
  tag: Type.Optional(Type.String({ maxLength: 500, description: "Only hosts with this tag or one below it" })),
  status: Type.Optional(Type.Boolean({ description: "true: only hosts that are online; false: only the others" })),
});
export type HostList = Static<typeof HostList>;

export const HostName = Type.Object({ name: Name });

/**
 * Absent members stay unchanged. Members of `config` are merged; `null` removes one. A secret sent in its masked form
 * (`******`) stays unchanged as well.
 */
export const HostInput = Type.Object({
  host: NewName,
  iplist: Type.Optional(
    Type.Array(Text(100), { maxItems: 64, description: "Addresses of the host. SSH uses the first one" }),
  ),
  domain: Type.Optional(Type.String({ maxLength: 255, description: "Domain of the host, for people" })),
  hostgroups: Type.Optional(
    Type.Array(Text(255), { maxItems: 500, description: "Groups of the host, for `group:` in lists of hosts" }),
  ),
  isagent: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1, description: "1: the host has an agent. Enrolment sets it by itself" }),
  ),
  isextagent: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1, description: "1: the host is for an external agent" }),
  ),
  iszabbix: Type.Optional(Type.Integer({ minimum: 0, maximum: 1, description: "1: the same as 1 of isextagent" })),
  sert: Type.Optional(Type.String({ maxLength: 65_536, description: "Text that is kept for clients; without effect" })),
  secret: Type.Optional(
    Type.Union([Text(65_536), Type.Null()], {
      description: "Secret that is kept for clients and never answered. Its mask `******` leaves it, null removes it",
    }),
  ),
  sshkey: Type.Optional(
    Type.String({
      pattern: "^(SHA256:[A-Za-z0-9+/]{43})?$",
      description:
        "SHA-256 fingerprint of the host's SSH key. Absent: the first connection records it. Empty: removes it",
    }),
  ),
  tags: Type.Optional(
    Type.Array(Text(500), { maxItems: 500, description: "Tags of the host, in place of the present ones" }),
  ),
  config: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        "Members are merged, null removes one. SSH needs `username`, `password` or `privatekey` (with `passphrase`), and `port`; also `address`, if neither iplist nor the name reaches the host. `time_zone`: zone for times without a zone in its records, unless the rule or the policy names one",
    }),
  ),
});
export type HostInput = Static<typeof HostInput>;

/** A host as users may see it: secrets are omitted or masked. */
export const HostView = Type.Object({
  id: Type.String({ description: "Id of the host as an object" }),
  class: Type.String({ description: "Class of the host as an object" }),
  host: Type.String({ description: "Name of the host" }),
  iplist: Type.Array(Type.String(), { description: "Addresses of the host" }),
  domain: Type.String({ description: "Domain of the host; empty: none" }),
  hostgroups: Type.Array(Type.String(), { description: "Groups of the host" }),
  isagent: Type.Integer({ description: "1 for a host whose agent enrolled, or as users set it; 0 otherwise" }),
  isextagent: Type.Integer({ description: "1 if the host is for an external agent, as users set it; 0 otherwise" }),
  iszabbix: Type.Integer({ description: "1 means the same as 1 of isextagent, as users set it; 0 otherwise" }),
  sert: Type.String({ description: "Text that is kept for clients" }),
  sshkey: Type.String({ description: "SHA-256 fingerprint of the key that the host shows over SSH; empty: not known" }),
  config: Type.Record(Type.String(), Type.String(), { description: "Configuration of the host; secrets are masked" }),
  depot: Type.Record(Type.String(), Type.String(), {
    description: "Depots on the host by name, each the JSON text of `[{version}]`",
  }),
  depottimes: Type.Record(Type.String(), Type.String(), {
    description: "Time since which each depot has its version on the host, in milliseconds since 1970",
  }),
  policies: Type.Record(Type.String(), Type.String(), {
    description: "State of each policy that is wanted on the host: `running`, `wanted`, or `failed: ` and the reason",
  }),
  policytimes: Type.Record(Type.String(), Type.String(), {
    description: "Time since which each policy has its state, in milliseconds since 1970",
  }),
  usage: Type.Record(Type.String(), Type.String(), {
    description:
      "Usage of the processes of daemons, by policy/<name>, and of external agents, by extagent, as JSON: cpu in percent of one processor, memory in bytes, processes",
  }),
  confs: Type.Record(Type.String(), Type.String(), {
    description: "SHA-256 of the conf that the agent has in place, by policy",
  }),
  status: Type.Union([Type.Literal("online"), Type.Literal("offline")], {
    description: "online while the agent has a session",
  }),
  statustime: Type.Optional(
    Type.Number({
      description:
        "Time since which the host has its status, in milliseconds since 1970; absent: no agent ever connected",
    }),
  ),
  tags: Type.Array(Type.String(), { description: "Tags of the host" }),
  revision: Type.String({
    description: "Revision of the definition; facts and states that odp notes leave it as it is",
  }),
});
export type HostView = Static<typeof HostView>;

export const TokenInput = Type.Object({
  host: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      documented: HOST_NAME,
      description: "The only host that may enrol with the token. Absent: any host without an enrolment",
    }),
  ),
  minutes: Type.Optional(
    Type.Integer({ minimum: 1, maximum: JOIN_TOKEN_MAX_MINUTES, description: "minutes that it holds" }),
  ),
});
export type TokenInput = Static<typeof TokenInput>;

export const TokenAnswer = Type.Object({
  token: Type.String({ description: "The token, told once. An agent takes it as ODP_AGENT_TOKEN" }),
  id: Type.String({ description: "names the token in lists, and revokes it" }),
  expires: Type.Integer({ description: "milliseconds since 1970" }),
  controller: Type.Optional(Type.String({ description: "Address of this controller for hosts; absent: not known" })),
});

export const TokenView = Type.Object({
  id: Type.String({ description: "Id of the token, which revokes it" }),
  host: Type.String({ description: "the host that may enrol; empty: any host without an enrolment" }),
  user: Type.String({ description: "the user who made it; empty: an earlier version of odp" }),
  expires: Type.Integer({ description: "milliseconds since 1970" }),
  used: Type.Integer({ description: "milliseconds since 1970; 0: not used" }),
  usedBy: Type.String({ description: "the host that enrolled with it; empty: none" }),
});
export type TokenView = Static<typeof TokenView>;

export const TokenId = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 64, description: "Id of the token, as the list of tokens has it" }),
});

export const EnrolInput = Type.Object({
  id: Type.String({ maxLength: 200, description: "Id of the token" }),
  csr: Type.String({ maxLength: 20_000, description: "Certificate signing request (PKCS #10), DER in base64" }),
  proof: Type.String({
    maxLength: 200,
    description: "Proof that the agent has the secret of the token: a code over the request, in base64",
  }),
  named: Type.Optional(
    Type.Boolean({ description: "true: the agent was given its name, so a token for another host is refused" }),
  ),
});

export const EnrolOutput = Type.Object({
  certificate: Type.String({ description: "Certificate of the agent, DER in base64" }),
  authorities: Type.Array(Type.String(), {
    description: "Certificates of the authorities that sign controllers, DER in base64",
  }),
  host: Type.String({ description: "Name under which the host is enrolled" }),
  tenant: Type.String({ description: "Name of the tenant" }),
  agentPort: Type.Integer({ description: "Port for agents of this controller" }),
  controllers: Type.Array(Type.String(), {
    description: "`host:port` of all controllers for agents; empty: the address that the agent enrolled at",
  }),
  proof: Type.String({
    description: "Proof that the controller has the secret of the token: a code over the answer, in base64",
  }),
});
