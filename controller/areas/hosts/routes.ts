import { Type } from "typebox";
import {
  EnrolInput,
  EnrolOutput,
  HostInput,
  HostList,
  HostName,
  HostView,
  TokenAnswer,
  TokenId,
  TokenInput,
  TokenView,
} from "../../../common/api/hosts.ts";
import { HTTP_SMALL_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { JoinAddress } from "./join-address.ts";
import type { HostService } from "./service.ts";

/** `joinAddress`: the address at which hosts join, sent with each token. Absent: the address is unknown. */
export function hostRoutes(hosts: HostService, joinAddress?: () => JoinAddress): readonly Endpoint[] {
  return [...recordRoutes(hosts), ...agentRoutes(hosts, joinAddress)];
}

function recordRoutes(hosts: HostService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/host",
      permission: "hosts:read",
      summary: "Hosts, all or those with a tag, online or not.",
      input: HostList,
      output: Type.Array(HostView),
      handler: async ({ principal, input }) => ({ rows: hosts.list(principal, input) }),
    }),
    endpoint({
      method: "POST",
      path: "/host",
      permission: "hosts:write",
      summary: "Makes a host or changes the members that are sent.",
      input: HostInput,
      output: HostView,
      body: "json",
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const warnings: string[] = [];
        const warn = (text: string) => warnings.push(text);
        const message = await hosts.save(principal, input, { warn, expected });
        return { message, revision: message.revision, ...(warnings.length > 0 && { warnings }) };
      },
    }),
    endpoint({
      method: "GET",
      path: "/host/:name",
      permission: "hosts:read",
      summary: "One host.",
      input: HostName,
      output: HostView,
      revised: true,
      handler: async ({ principal, input }) => {
        const message = await hosts.get(principal, input.name);
        return { message, revision: message.revision };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/host/:name",
      permission: "hosts:write",
      summary: "Removes a host; its agent's certificate is no longer good.",
      input: HostName,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        await hosts.remove(principal, input.name, expected);
        return { message: "", revision: undefined };
      },
    }),
  ];
}

function agentRoutes(hosts: HostService, joinAddress: (() => JoinAddress) | undefined): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/agent/token",
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "hosts:write",
      summary: "A join token, good for one enrolment.",
      input: TokenInput,
      output: TokenAnswer,
      body: "json",
      handler: async ({ principal, input }) => {
        const warnings: string[] = [];
        const token = await hosts.tokens.create(principal, input, (text) => warnings.push(text));
        if (joinAddress === undefined) return { message: token, warnings };
        const { url, obstacles } = joinAddress();
        return { message: { ...token, controller: url }, warnings: [...warnings, ...obstacles] };
      },
    }),
    endpoint({
      method: "GET",
      path: "/agent/token",
      permission: "hosts:write",
      summary: "Join tokens, used or not, until they expire.",
      input: Type.Object({}),
      output: Type.Array(TokenView),
      handler: async ({ principal }) => ({ message: [...(await hosts.tokens.list(principal))] }),
    }),
    endpoint({
      method: "DELETE",
      path: "/agent/token/:id",
      permission: "hosts:write",
      summary: "Revokes a join token that was not used.",
      input: TokenId,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        await hosts.tokens.revoke(principal, input.id);
        return { message: "" };
      },
    }),
    endpoint({
      method: "POST",
      path: "/agent/enrol",
      permission: "public",
      summary: "A certificate for the holder of a join token.",
      input: EnrolInput,
      output: EnrolOutput,
      body: "json",
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      handler: async ({ input }) => {
        const answer = await hosts.agents.enrol(input);
        return { message: { ...answer, authorities: [...answer.authorities], controllers: [...answer.controllers] } };
      },
    }),
  ];
}
