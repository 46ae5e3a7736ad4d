import { Type } from "typebox";
import { TaggingInput, TagMove, TagNamed, TagTree, TagTreeGet } from "../../../common/api/tags.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { TagService } from "./service.ts";

export function tagRoutes(tags: TagService): readonly Endpoint[] {
  return [...treeRoutes(tags), ...moveRoutes(tags), unusedRoute(tags), addingRoute(tags), ...takingRoutes(tags)];
}

function treeRoutes(tags: TagService): readonly Endpoint[] {
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
      summary: "Remove a tag with all below it, also from all that bears it and no other domain shows",
      input: TagNamed,
      output: Type.String(),
      handler: async ({ principal, input: { domain, tagpath } }) => {
        return { message: "", warnings: await tags.remove(principal, { domain, path: tagpath }) };
      },
    }),
  ];
}

function moveRoutes(tags: TagService): readonly Endpoint[] {
  return ["/tagdir/:domain", "/tagdir/:domain/rename"].map((path) =>
    endpoint({
      method: "PUT",
      path,
      permission: "tags:write",
      summary: "Move or rename a tag with all below it, also on all that bears it: topath is its whole new path",
      input: TagMove,
      output: Type.String(),
      body: "form",
      handler: async ({ principal, input: { domain, tagpath, topath } }) => {
        return { message: "", warnings: await tags.move(principal, { domain, path: tagpath }, topath) };
      },
    }),
  );
}

function unusedRoute(tags: TagService): Endpoint {
  return endpoint({
    method: "GET",
    path: "/tagdir/:domain/nodata",
    permission: "tags:read",
    summary: "Whether nothing bears a tag or one below it",
    input: TagNamed,
    output: Type.Boolean(),
    handler: async ({ principal, input: { tagpath } }) => ({ message: await tags.isUnused(principal, tagpath) }),
  });
}

function addingRoute(tags: TagService): Endpoint {
  return endpoint({
    method: "PUT",
    path: "/:domain/addtags",
    permission: "tags:write",
    summary: "Add tags to objects by their ids, and to the domain where it lacks them",
    input: TaggingInput,
    output: Type.String(),
    body: "form",
    handler: async ({ principal, input: { domain, tag, id } }) => {
      await tags.addTo(principal, domain, { ids: id, tags: tag });
      return { message: "" };
    },
  });
}

function takingRoutes(tags: TagService): readonly Endpoint[] {
  return (
    [
      ["DELETE", "/:domain/deletetags"],
      ["PUT", "/tagdir/:domain/deletetags"],
    ] as const
  ).map(([method, path]) =>
    endpoint({
      method,
      path,
      permission: "tags:write",
      summary: "Take tags from objects by their ids",
      input: TaggingInput,
      output: Type.String(),
      body: "form",
      handler: async ({ principal, input: { domain, tag, id } }) => {
        await tags.takeFrom(principal, domain, { ids: id, tags: tag });
        return { message: "" };
      },
    }),
  );
}
