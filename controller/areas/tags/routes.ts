import { Type } from "typebox";
import { TagMove, TagNamed, TagTree, TagTreeGet } from "../../../common/api/tags.ts";
import { endpoint, type Endpoint } from "../../http/endpoint.ts";
import type { TagService } from "./service.ts";

export function tagRoutes(tags: TagService): readonly Endpoint[] {
  const moving = {
    method: "PUT",
    permission: "tags:write",
    input: TagMove,
    output: Type.String(),
    body: "form",
  } as const;
  return [
    endpoint({
      method: "GET",
      path: "/tagdir/:domain",
      permission: "tags:read",
      summary: "The tree of tags of a domain, or what lies below one of them; empty when there is none",
      input: TagTreeGet,
      output: TagTree,
      handler: async ({ principal, input: { domain, tagpath } }) => {
        const { name, nodes } = await tags.tree(principal, domain, tagpath);
        return { message: { name, nodes: nodes.map((node) => ({ ...node })) } };
      },
    }),
    endpoint({
      method: "POST",
      path: "/tagdir/:domain",
      permission: "tags:write",
      summary: "Add a tag, with all above it",
      input: TagNamed,
      output: Type.String(),
      body: "form",
      handler: async ({ principal, input: { domain, tagpath } }) => {
        await tags.add(principal, { domain, path: tagpath });
        return { message: "" };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/tagdir/:domain",
      permission: "tags:write",
      summary: "Remove a tag with all below it",
      input: TagNamed,
      output: Type.String(),
      handler: async ({ principal, input: { domain, tagpath } }) => {
        await tags.remove(principal, { domain, path: tagpath });
        return { message: "" };
      },
    }),
    ...["/tagdir/:domain", "/tagdir/:domain/rename"].map((path) =>
      endpoint({
        ...moving,
        path,
        summary: "Move or rename a tag with all below it: topath is its whole new path",
        handler: async ({ principal, input: { domain, tagpath, topath } }) => {
          await tags.move(principal, { domain, path: tagpath }, topath);
          return { message: "" };
        },
      }),
    ),
  ];
}
