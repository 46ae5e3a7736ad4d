import { Type } from "typebox";
import {
  ApiCreate,
  ApiGroups,
  ApiName,
  ApiPaths,
  ApiReplies,
  ApiReply,
  Explain,
  ExplainReply,
  GroupChange,
  GroupCreate,
  GroupId,
  GroupList,
  GroupReplies,
  GroupReply,
} from "../../../common/api/perms.ts";
import { GROUP_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { ExplainService } from "./explain.ts";
import type { GroupService } from "./service.ts";
import { groupReply } from "./shown.ts";
import type { ApiPermission } from "./types.ts";

export function groupRoutes(groups: GroupService): readonly Endpoint[] {
  return [
    ...changingRoutes(groups),
    ...readingRoutes(groups),
    ...apiRoutes(groups),
    ...apiPathRoutes(groups),
    ...refreshRoutes(groups),
  ];
}

export function explainRoutes(explaining: ExplainService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/admin/perms/explain",
      permission: "perms:read",
      summary: "Why a user may or may not use a class, a path or an endpoint, and which groups may",
      input: Explain,
      output: ExplainReply,
      handler: async ({ principal, input }) => {
        const { groups, why, who, ...rest } = await explaining.explain(principal, input);
        const givers = who.map((one) => ({ ...one, member: [...one.member] }));
        return { message: { ...rest, groups: [...groups], why: [...why], who: givers } };
      },
    }),
  ];
}

const GROUP_PATH = "/admin/perms/group";

function changingRoutes(groups: GroupService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: GROUP_PATH,
      permission: "perms:write",
      summary: "Make a group; the message is its id",
      body: "json",
      input: GroupCreate,
      output: Type.String(),
      bodyMaxBytes: GROUP_BODY_MAX_BYTES,
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const { id, warnings, revision } = await groups.create(principal, input, expected);
        return { message: id, warnings, revision };
      },
    }),
    endpoint({
      method: "PUT",
      path: GROUP_PATH,
      permission: "perms:write",
      summary: "Change a group: members that are absent stay; the message is its id",
      input: GroupChange,
      output: Type.String(),
      body: "json",
      bodyMaxBytes: GROUP_BODY_MAX_BYTES,
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const { id, warnings, revision } = await groups.update(principal, input, expected);
        return { message: id, warnings, revision };
      },
    }),
    endpoint({
      method: "DELETE",
      path: `${GROUP_PATH}/:id`,
      permission: "perms:write",
      summary: "Delete a group; what it opened is closed at once",
      input: GroupId,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const warnings = await groups.remove(principal, input.id, expected);
        return { message: "", warnings, revision: undefined };
      },
    }),
  ];
}

function readingRoutes(groups: GroupService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: GROUP_PATH,
      permission: "perms:read",
      summary: "Groups below a group, or those below none",
      input: GroupList,
      output: GroupReplies,
      handler: async ({ principal, input }) => ({
        message: (await groups.list(principal, input.parent)).map(groupReply),
      }),
    }),
    endpoint({
      method: "GET",
      path: `${GROUP_PATH}/:id`,
      permission: "perms:read",
      summary: "One group",
      input: GroupId,
      output: GroupReply,
      revised: true,
      handler: async ({ principal, input }) => {
        const group = await groups.find(principal, input.id);
        return { message: groupReply(group), revision: group.revision };
      },
    }),
  ];
}

const API_PATH = "/admin/perms/api";
const API_PERMISSION_PATH = `${API_PATH}/:name`;

function apiRoutes(groups: GroupService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: API_PATH,
      permission: "perms:write",
      summary: "Make an API permission for paths of scripts and files; it has no group yet",
      input: ApiCreate,
      output: Type.String(),
      body: "multipart",
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const { revision } = await groups.api.create(principal, input.name, input.path, expected);
        return { message: "", revision };
      },
    }),
    endpoint({
      method: "GET",
      path: API_PATH,
      permission: "perms:read",
      summary: "All API permissions",
      input: Type.Object({}),
      output: ApiReplies,
      handler: async ({ principal }) => ({ message: (await groups.api.list(principal)).map(apiReply) }),
    }),
    endpoint({
      method: "GET",
      path: API_PERMISSION_PATH,
      permission: "perms:read",
      summary: "One API permission",
      input: ApiName,
      output: ApiReply,
      revised: true,
      handler: async ({ principal, input }) => {
        const found = await groups.api.find(principal, input.name);
        return { message: apiReply(found), revision: found.revision };
      },
    }),
    endpoint({
      method: "DELETE",
      path: API_PERMISSION_PATH,
      permission: "perms:write",
      summary: "Delete an API permission; its paths are closed at once",
      input: ApiName,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const warnings = await groups.api.remove(principal, input.name, expected);
        return { message: "", warnings, revision: undefined };
      },
    }),
  ];
}

/** Routes for API permissions: which paths they open, and to which groups. */
function apiPathRoutes(groups: GroupService): readonly Endpoint[] {
  return [
    endpoint({
      method: "PUT",
      path: API_PERMISSION_PATH,
      permission: "perms:write",
      summary: "Replace the paths of an API permission",
      input: ApiPaths,
      output: Type.String(),
      body: "multipart",
      revised: true,
      handler: async ({ principal, input, expected }) => ({
        message: "",
        ...(await groups.api.setPaths(principal, input.name, input.path, expected)),
      }),
    }),
    endpoint({
      method: "PUT",
      path: `${API_PERMISSION_PATH}/group`,
      permission: "perms:write",
      summary: "Open the paths of an API permission to groups, beside those that have it",
      input: ApiGroups,
      output: Type.String(),
      body: "multipart",
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const { revision } = await groups.api.addGroups(principal, input.name, input.group, expected);
        return { message: "", revision };
      },
    }),
    endpoint({
      method: "DELETE",
      path: `${API_PERMISSION_PATH}/group`,
      permission: "perms:write",
      summary: "Close the paths of an API permission to groups",
      input: ApiGroups,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => ({
        message: "",
        ...(await groups.api.removeGroups(principal, input.name, input.group, expected)),
      }),
    }),
  ];
}

function refreshRoutes(groups: GroupService): readonly Endpoint[] {
  return (["GET", "POST"] as const).map((method) =>
    endpoint({
      method,
      path: "/admin/perms/app/refresh",
      permission: "perms:write",
      summary: "Let every controller drop what it keeps in memory of groups, permissions and who signed in",
      input: Type.Object({}),
      output: Type.String(),
      handler: async ({ principal }) => {
        await groups.refresh(principal);
        return { message: "" };
      },
    }),
  );
}

function apiReply({ name, paths, groups, revision }: ApiPermission) {
  return { name, pprefix: [...paths], _group: { _all: [...groups] }, revision };
}
