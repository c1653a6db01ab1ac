"""What each role may do in Airflow: the only table of permissions. `tipcflow access apply` stores it.

Verbs and resources are those of Airflow's FAB provider. A role of tipcflow is a role there with the prefix
`tipcflow`; the role `admin` is Airflow's own role Admin, which has every permission.
"""

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from tipcflow.config.access.roles import ACTIONS, Role
from tipcflow.domain.base import Frozen

ADMIN = "Admin"


class Verb(StrEnum):
    """What may be done with a resource."""

    READ = "can_read"
    CREATE = "can_create"
    EDIT = "can_edit"
    DELETE = "can_delete"
    MENU = "menu_access"


class Resource(StrEnum):
    """A resource of Airflow's api-server that a role may use. The others are for admins."""

    ASSETS = "Assets"
    ASSET_ALIASES = "Asset Aliases"
    BROWSE = "Browse"
    DAGS = "DAGs"
    CODE = "DAG Code"
    DEPENDENCIES = "DAG Dependencies"
    DAG_RUNS = "DAG Runs"
    VERSIONS = "DAG Versions"
    WARNINGS = "DAG Warnings"
    DOCS = "Docs"
    DOCUMENTATION = "Documentation"
    IMPORT_ERRORS = "ImportError"
    JOBS = "Jobs"
    PASSWORD = "My Password"  # noqa: S105  # the name of a resource
    PROFILE = "My Profile"
    POOLS = "Pools"
    TASK_INSTANCES = "Task Instances"
    TASK_LOGS = "Task Logs"
    WEBSITE = "Website"
    XCOMS = "XComs"


Permission = tuple[str, str]
_READ = (
    Resource.ASSETS,
    Resource.ASSET_ALIASES,
    Resource.CODE,
    Resource.DAGS,
    Resource.DAG_RUNS,
    Resource.DEPENDENCIES,
    Resource.IMPORT_ERRORS,
    Resource.JOBS,
    Resource.POOLS,
    Resource.TASK_INSTANCES,
    Resource.TASK_LOGS,
    Resource.VERSIONS,
    Resource.WARNINGS,
    Resource.WEBSITE,
    Resource.XCOMS,
)
_MENUS = (Resource.ASSETS, Resource.BROWSE, Resource.DAGS, Resource.DEPENDENCIES, Resource.DAG_RUNS,
          Resource.DOCS, Resource.DOCUMENTATION, Resource.JOBS, Resource.TASK_INSTANCES)  # fmt: skip
READS = tuple((Verb.READ, name) for name in _READ) + tuple((Verb.MENU, name) for name in _MENUS)
# Of users, not of programs: they change their own password, and see who they are.
_OWN = (Resource.PASSWORD, Resource.PROFILE)
OWN_ACCOUNT = tuple((verb, name) for name in _OWN for verb in (Verb.READ, Verb.EDIT))
STARTS = ((Verb.CREATE, Resource.DAG_RUNS),)
# Pause DAGs; mark, clear and annotate DAG runs and their tasks.
OPERATES = ((Verb.EDIT, Resource.DAGS), (Verb.EDIT, Resource.DAG_RUNS), (Verb.EDIT, Resource.TASK_INSTANCES))


class Rights(Frozen):
    """The permissions of a role in Airflow."""

    role: Role
    airflow: tuple[tuple[Verb, Resource], ...]

    @model_validator(mode="after")
    def _deletes_nothing(self) -> Self:
        deleting = [resource for verb, resource in self.airflow if verb is Verb.DELETE]
        if deleting:
            raise ValueError(f"role {self.role} may delete {deleting[0]}, which only {ADMIN} may")
        return self

    @property
    def name(self) -> str:
        """Name of the role in Airflow."""
        return role_name(self.role)

    @property
    def permissions(self) -> frozenset[Permission]:
        """All pairs of verb and resource, also those of tipcflow's pages."""
        own = {(Verb.EDIT.value, action.resource) for action in ACTIONS[self.role]}
        return frozenset({(verb.value, resource.value) for verb, resource in self.airflow} | own)


TABLE = (
    Rights(role=Role.VIEWER, airflow=READS + OWN_ACCOUNT),
    Rights(role=Role.CI, airflow=READS + STARTS),
    Rights(role=Role.OPERATOR, airflow=READS + OWN_ACCOUNT + STARTS + OPERATES),
    Rights(role=Role.APPROVER, airflow=READS + OWN_ACCOUNT),
)


def role_name(role: Role) -> str:
    """Return the name of a role in Airflow."""
    return ADMIN if role is Role.ADMIN else f"tipcflow {role.value}"
