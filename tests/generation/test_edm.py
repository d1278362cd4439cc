"""Preconditioning, loss, schedule and Heun's method against closed forms and diffusers."""

import numpy as np
import pytest
import torch
from diffusers import EDMDPMSolverMultistepScheduler, EDMEulerScheduler
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.optimize import brentq
from scipy.stats import norm
from torch import nn

from robust_fairness.bench.generation import edm, unet
from robust_fairness.bench.generation.edm import Denoiser, Preconditioning, Sampler


class Fixed(nn.Module):
    """A network of one number that notes what it is asked."""

    def __init__(self, answer: float = 0.0) -> None:
        super().__init__()
        self.answer = nn.Parameter(torch.tensor(answer))
        self.asked: list = []

    def forward(self, images, times, labels):
        self.asked.append((images, times, labels))
        return torch.sin(images) * 0 + self.answer


def gaussian(mean: float, deviation: float):
    """The denoiser of data N(mean, deviation^2), in closed form."""

    def denoise(x, sigma, labels):
        return (deviation**2 * x + sigma**2 * mean) / (deviation**2 + sigma**2)

    return denoise


def solve(denoise, latents, **sampler) -> torch.Tensor:
    """Where the sampler ends."""
    labels = torch.zeros(len(latents), dtype=torch.int64)
    return edm.heun(denoise, latents, labels, edm.schedule(Sampler(**sampler)))


@pytest.mark.parametrize("scheduler", [EDMEulerScheduler, EDMDPMSolverMultistepScheduler])
@pytest.mark.parametrize(
    ("steps", "options"),
    [(18, {}), (40, {}), (7, {"rho": 3.0, "sigma_min": 0.01, "sigma_max": 50.0}), (1, {})],
)
def test_schedule_is_that_of_diffusers(scheduler, steps, options):
    other = scheduler(**options)
    other.set_timesteps(steps)
    sigmas = edm.schedule(Sampler(steps=steps, **options))
    np.testing.assert_allclose(sigmas, other.sigmas.numpy(), rtol=2e-6)


@pytest.mark.parametrize("factor", [1.0, 1000.0])
def test_preconditioning_is_that_of_diffusers(factor):
    x = torch.randn(5, 2, 3, 3, generator=torch.Generator().manual_seed(0))
    sigma = torch.tensor([0.002, 0.1, 0.5, 3.0, 80.0])
    labels = torch.arange(5)
    network = Fixed(0.7)
    ours = Denoiser(network, Preconditioning(sigma_data=0.4, noise_factor=factor))(x, sigma, labels)
    ((inputs, times, told),) = network.asked
    other = EDMEulerScheduler(sigma_data=0.4)
    each = sigma[:, None, None, None]
    torch.testing.assert_close(inputs, other.precondition_inputs(x, each))
    torch.testing.assert_close(times, other.precondition_noise(sigma) * factor)
    answer = torch.full_like(x, 0.7)
    torch.testing.assert_close(ours, other.precondition_outputs(x, answer, each))
    assert torch.equal(told, labels)


def test_sampler_is_of_second_order():
    """Half the step, a quarter of the error; Euler's method would halve it."""
    latents = torch.tensor([1.7], dtype=torch.float64).reshape(1, 1, 1, 1)
    exact = 0.2 + (latents * 80.0 - 0.2) * 0.5 / np.hypot(0.5, 80.0)
    errors = [
        (solve(gaussian(0.2, 0.5), latents, steps=steps, sigma_min=1e-5) - exact).abs().item()
        for steps in (80, 160, 320)
    ]
    ratios = np.divide(errors[:-1], errors[1:])
    assert (np.abs(ratios - 4) < 0.5).all(), ratios


def test_sampler_moves_a_mixture_of_gaussians_along_its_quantiles():
    """In one dimension the probability flow keeps every point's quantile."""
    means, deviations, shares = np.array([-0.6, 0.5]), np.array([0.1, 0.3]), np.array([0.3, 0.7])

    def cumulative(x, sigma):
        return float((shares * norm.cdf(x, means, np.hypot(deviations, sigma))).sum())

    def denoise(x, sigma, labels):
        m, v, p = (torch.from_numpy(array) for array in (means, deviations**2, shares))
        x, total = x[..., None], v + sigma**2
        log = p.log() - total.log() / 2 - (x - m) ** 2 / (2 * total)
        return (log.softmax(-1) * (v * x + sigma**2 * m) / total).sum(-1)

    latents = torch.linspace(-2, 2, 9, dtype=torch.float64).reshape(9, 1, 1, 1)
    solved = solve(denoise, latents, steps=300, sigma_min=1e-4).flatten().tolist()
    for latent, x in zip(latents.flatten().tolist(), solved, strict=True):
        quantile = cumulative(80.0 * latent, 80.0)
        exact = brentq(lambda y, q=quantile: cumulative(y, 0.0) - q, -5, 5)
        assert abs(x - exact) < 2e-3


@pytest.mark.parametrize("steps", [1, 2, 18])
def test_sampler_evaluates_twice_a_step_but_for_the_last(steps):
    asked = []

    def denoise(x, sigma, labels):
        asked.append((x, sigma.item()))
        return torch.zeros_like(x)

    latents = torch.ones(2, 1, 1, 1)
    solve(denoise, latents, steps=steps)
    assert len(asked) == 2 * steps - 1
    assert torch.equal(asked[0][0], latents * 80)
    assert asked[0][1] == 80
    assert min(sigma for _, sigma in asked) > 0


def test_sampling_asks_no_tensor_for_its_value():
    """Tensors without content have none to give: whatever waits for the device fails."""
    parameters = unet.UNetParameters(channels=(8, 16), groups=4, attention=(4,))
    network = unet.build(parameters, 3, (8, 8), 10, 0).to("meta")
    latents = torch.empty(5, 3, 8, 8, device="meta")
    labels = torch.empty(5, dtype=torch.int64, device="meta")
    denoiser = Denoiser(network, Preconditioning())
    with torch.inference_mode():
        pixels = edm.to_pixels(edm.heun(denoiser, latents, labels, edm.schedule(Sampler(steps=3))))
    assert pixels.device.type == "meta"
    assert pixels.shape == latents.shape
    with pytest.raises(RuntimeError):
        pixels.float().mean().item()


@pytest.mark.parametrize(("answer", "expected"), [(0.0, 1.0), (0.5, 1.25), (-1.0, 2.0)])
def test_loss_of_gaussian_data_has_its_closed_form(answer, expected):
    """For data N(0, sigma_data^2) the best network answers 0, and its loss is 1 at every sigma.

    A network that answers a has the loss 1 + a^2.
    """
    draws = torch.Generator().manual_seed(0)
    images = torch.randn(4000, 1, 8, 8, generator=draws) * 0.5
    labels = torch.zeros(4000, dtype=torch.int64)
    for mean in (-4.0, -1.2, 3.0):
        sigmas = edm.training_sigmas(torch.randn(4000, generator=draws), mean, 0.3)
        normal = torch.randn(images.shape, generator=draws)
        denoiser = Denoiser(Fixed(answer), Preconditioning())
        loss = edm.loss(denoiser, images, labels, sigmas, normal)
        assert abs(loss.item() - expected) < 0.02 * expected


def test_loss_is_the_weighted_squared_error():
    """Restated image by image, with numbers."""
    rng = np.random.default_rng(0)
    images, noise = rng.normal(size=(2, 3, 1, 2, 2)).astype(np.float32)
    sigmas = np.array([0.05, 0.8, 12.0], dtype=np.float32)
    wanted = 0.0
    for image, draw, sigma in zip(images, noise, sigmas, strict=True):
        noisy = image + sigma * draw
        denoised = 0.25 / (sigma**2 + 0.25) * noisy + 0.3 * sigma * 0.5 / np.sqrt(sigma**2 + 0.25)
        wanted += (sigma**2 + 0.25) / (sigma * 0.5) ** 2 * ((denoised - image) ** 2).mean() / 3
    given = [torch.from_numpy(array) for array in (images, sigmas, noise)]
    labels = torch.zeros(3, dtype=torch.int64)
    loss = edm.loss(Denoiser(Fixed(0.3), Preconditioning()), given[0], labels, given[1], given[2])
    assert loss.item() == pytest.approx(wanted, rel=1e-4)


def test_noise_levels_of_training_are_log_normal():
    sigmas = edm.training_sigmas(torch.randn(200_000), -1.2, 1.2).log()
    assert abs(sigmas.mean() + 1.2) < 0.02
    assert abs(sigmas.std() - 1.2) < 0.02


def test_pixels_survive_the_way_to_images_and_back():
    pixels = torch.arange(256, dtype=torch.uint8)
    images = edm.from_pixels(pixels)
    assert (images[0], images[-1]) == (-1, 1)
    assert torch.equal(edm.to_pixels(images), pixels)


@given(st.lists(st.floats(-3, 3, width=32), min_size=1))
def test_pixels_are_clipped_and_rounded(values):
    pixels = edm.to_pixels(torch.tensor(values)).numpy()
    scaled = (np.clip(np.array(values), -1, 1) + 1) * 127.5
    assert (np.abs(pixels - scaled) <= 0.5 + 1e-4).all()


@pytest.mark.parametrize(
    "settings",
    [{"steps": 0}, {"sigma_min": 0}, {"sigma_min": 90}, {"rho": -1}, {"stps": 3}],
)
def test_bad_samplers_are_refused(settings):
    with pytest.raises(ValidationError):
        Sampler.model_validate(settings)
