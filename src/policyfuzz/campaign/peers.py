"""Other instances in the same folder: who they are, and whether what they find means anything here."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from policyfuzz.campaign.config import CampaignConfig
from policyfuzz.campaign.parcels import ABOUT, DamagedFile, read_page
from policyfuzz.campaign.reader import CampaignReader


@dataclass(frozen=True, slots=True)
class About:
    """Who an instance is, as it says itself."""

    instance: str  #: the same for all its life, whatever its folder is called
    host: str  #: machine that it was last started on
    target: str
    policy_sha256: str
    code_sha256: str
    dimensions: list[list[Any]]  #: name, kind and range of each
    config: str  #: all of the configuration, as text

    @classmethod
    def of(cls, campaign: CampaignReader, host: str) -> "About":
        """Who the instance with this `campaign` is."""
        config = campaign.config
        return cls(
            instance=campaign.about["instance"],
            host=host,
            target=config.target,
            policy_sha256=config.policy_sha256,
            code_sha256=config.code_sha256,
            dimensions=[[row["name"], row["kind"], row["low"], row["high"]] for row in campaign.dimensions],
            config=config.to_json(),
        )

    @classmethod
    def read(cls, folder: Path) -> "About":
        """Who the instance with the campaign in `folder` is."""
        page = read_page(folder, ABOUT)
        values: dict[str, Any] = {field.name: page.get(field.name) for field in fields(cls)}
        wrong = [name for name, value in values.items() if not isinstance(value, str)]
        if wrong != ["dimensions"] or not isinstance(values["dimensions"], list):
            raise DamagedFile(f"{ABOUT} is damaged: it does not say all that it should")
        return cls(**values)

    def page(self) -> dict[str, Any]:
        """As about.json says it."""
        return asdict(self)

    def settings(self) -> CampaignConfig:
        """All of the configuration."""
        try:
            return CampaignConfig.from_json(self.config)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"{ABOUT} is damaged: its configuration cannot be read") from error

    def strangeness(self, other: "About") -> str | None:
        """Why nothing can be exchanged with the `other`, for a reader; None where it can."""
        if self.target != other.target:
            return f"it fuzzes {other.target}, not {self.target}"
        if self.policy_sha256 != other.policy_sha256:
            return "it tests another policy"
        if self.code_sha256 != other.code_sha256:
            return "the files that its target is written in differ from those here"
        if self.dimensions != other.dimensions:
            return "its inputs have other dimensions"
        return None


def instance_folders(folder: Path) -> Iterator[Path]:
    """Folders of instances in `folder`, by name; those that show nothing yet are left out."""
    yield from sorted(path.parent.parent for path in folder.glob(f"*/exchange/{ABOUT}"))
