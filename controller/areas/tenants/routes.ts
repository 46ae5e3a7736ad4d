import {
  CompanyAdministrator,
  CompanyCreation,
  CompanyList,
  CompanyName,
  CompanyRemoval,
  CompanyRemoved,
  CompanyUpdate,
  CompanyView,
  CompanyViews,
} from "../../../common/api/tenants.ts";
import { TENANT_BODY_MAX_BYTES, TENANT_MAKE_DEADLINE_MS } from "../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { Companies } from "./types.ts";

export function tenantRoutes(companies: Companies): readonly Endpoint[] {
  return [...reading(companies), ...writing(companies), ...ending(companies)];
}

function reading(companies: Companies): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/companys",
      permission: "tenants:read",
      summary: "Tenants: all of them for administrators of the first one, the own one for others",
      input: CompanyList,
      output: CompanyViews,
      handler: ({ principal, input }) => Promise.resolve({ rows: companies.list(principal, input) }),
    }),
    endpoint({
      method: "GET",
      path: "/companys/:name",
      permission: "tenants:read",
      summary: "One tenant",
      input: CompanyName,
      output: CompanyView,
      handler: async ({ principal, input }) => ({ message: await companies.get(principal, input.name) }),
    }),
  ];
}

function writing(companies: Companies): readonly Endpoint[] {
  const common = {
    path: "/companys",
    permission: "tenants:write",
    body: "json",
    bodyMaxBytes: TENANT_BODY_MAX_BYTES,
  } as const;
  return [
    endpoint({
      ...common,
      method: "POST",
      summary: "Makes a tenant with its administrator admin; the message has the password when it was generated",
      input: CompanyCreation,
      output: CompanyAdministrator,
      deadlineMs: () => TENANT_MAKE_DEADLINE_MS,
      handler: async ({ principal, input }) => ({ message: await companies.create(principal, input) }),
    }),
    endpoint({
      ...common,
      method: "PUT",
      summary: "Changes members of a tenant",
      input: CompanyUpdate,
      output: CompanyView,
      handler: async ({ principal, input }) => ({ message: await companies.update(principal, input) }),
    }),
  ];
}

function ending(companies: Companies): readonly Endpoint[] {
  return [
    endpoint({
      method: "DELETE",
      path: "/companys/:name",
      permission: "tenants:write",
      summary: "Deletes a tenant: absent for every call at once, its data kept for a while",
      input: CompanyRemoval,
      output: CompanyRemoved,
      handler: async ({ principal, input }) => {
        await companies.remove(principal, input.name, input);
        return { message: "" };
      },
    }),
    endpoint({
      method: "POST",
      path: "/companys/:name/restore",
      permission: "tenants:write",
      summary: "Has a deleted tenant back while its data is kept",
      input: CompanyName,
      output: CompanyView,
      handler: async ({ principal, input }) => ({ message: await companies.restore(principal, input.name) }),
    }),
  ];
}
