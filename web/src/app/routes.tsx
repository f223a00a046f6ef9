import { lazy } from "react";
import type { RouteObject } from "react-router";

// Every page is a chunk of its own: the first one is small, the editor comes when it is opened.
const Overview = lazy(() => import("./Overview"));
const Graders = lazy(() => import("../graders/GradersPage"));
const Runs = lazy(() => import("../runs/RunsPage"));
const Labels = lazy(() => import("../labels/LabelsPage"));
const Data = lazy(() => import("../data/DatasetsPage"));
const Dataset = lazy(() => import("../data/DatasetPage"));
const Jobs = lazy(() => import("../data/JobsPage"));
const Job = lazy(() => import("../data/JobPage"));
const Traces = lazy(() => import("../data/TracesPage"));
const Environments = lazy(() => import("../data/EnvironmentsPage"));
const Settings = lazy(() => import("../settings/SettingsPage"));
const Missing = lazy(() => import("./Missing"));

/** What is in a project stands below `/p/PROJECT`; runs, environments and settings do not. */
export const routes: RouteObject[] = [
  { path: "/", element: <Overview /> },
  { path: "/p/:project/graders", element: <Graders /> },
  { path: "/p/:project/labels", element: <Labels /> },
  { path: "/p/:project/datasets", element: <Data /> },
  { path: "/p/:project/datasets/:key", element: <Dataset /> },
  { path: "/p/:project/jobs", element: <Jobs /> },
  { path: "/p/:project/jobs/:id", element: <Job /> },
  { path: "/p/:project/traces", element: <Traces /> },
  { path: "/environments", element: <Environments /> },
  { path: "/runs", element: <Runs /> },
  { path: "/settings", element: <Settings /> },
  { path: "*", element: <Missing /> },
];
